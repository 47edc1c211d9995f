// utf8.h: the only check for well-formed UTF-8 in the tree.
#ifndef QUEEN_BASE_UTF8_H
#define QUEEN_BASE_UTF8_H

#include <stddef.h>

// Length (2 to 4) of the sequence at p, where p[0] >= 0x80. 0 if it is malformed: cut short by
// n, overlong, a surrogate, or beyond U+10FFFF.
static inline size_t utf8_sequence(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    unsigned char low = 0x80, high = 0xbf; // of the second byte
    size_t len;

    if (u[0] < 0xc2)
        return 0;
    if (u[0] < 0xe0) {
        len = 2;
    } else if (u[0] < 0xf0) {
        len = 3;
        if (u[0] == 0xe0)
            low = 0xa0;
        else if (u[0] == 0xed)
            high = 0x9f;
    } else if (u[0] < 0xf5) {
        len = 4;
        if (u[0] == 0xf0)
            low = 0x90;
        else if (u[0] == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (n < len || u[1] < low || u[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

#endif
