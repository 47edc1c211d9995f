// spark.c: draws the last values as a row of bars.
#include "cli/spark.h"

void spark_add(struct spark *s, double value) { s->values[s->n++ % SPARK_MAX] = value; }

static double back(const struct spark *s, unsigned age)
{
    return s->values[(s->n - 1 - age) % SPARK_MAX];
}

void spark_put(struct buf *b, const struct spark *s, unsigned width)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    unsigned known = s->n < SPARK_MAX ? s->n : SPARK_MAX;
    double max = 0;

    width = width < SPARK_MAX ? width : SPARK_MAX;
    for (unsigned age = 0; age < width && age < known; age++)
        max = back(s, age) > max ? back(s, age) : max;
    for (unsigned age = width; age-- > 0;) {
        if (age >= known) {
            buf_putc(b, ' ');
            continue;
        }
        unsigned level = max > 0 ? (unsigned)(back(s, age) / max * 7 + 0.5) : 0;
        buf_put(b, span_of(bars[level < 7 ? level : 7]));
    }
}
