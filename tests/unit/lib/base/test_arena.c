// arena.c: zeroed, aligned, of any size, freed at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

static void objects_of_all_sizes_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct arena a;
    char *object[200];
    arena_init(&a);
    for (unsigned i = 0; i < 200; i++) {
        size_t size = (size_t)i * i * 3 + 1; // past the largest block
        object[i] = arena_alloc(&a, size);
        assert_int_equal((uintptr_t)object[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(object[i][k], 0);
        memset(object[i], (int)i, size);
    }
    for (unsigned i = 0; i < 200; i++) {
        size_t size = (size_t)i * i * 3 + 1;
        assert_int_equal((unsigned char)object[i][0], i);
        assert_int_equal((unsigned char)object[i][size - 1], i);
    }
    arena_deinit(&a);
}

static void a_big_object_does_not_end_the_current_block(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    arena_alloc(&a, 16);
    char *pos = a.pos;
    arena_alloc(&a, 1 << 20);
    assert_ptr_equal(a.pos, pos);
    arena_deinit(&a);
}

static void after_deinit_it_can_be_used_again(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    arena_alloc(&a, 100000);
    arena_deinit(&a);
    assert_null(a.head);
    assert_string_equal(arena_cstr(&a, SPAN("again")), "again");
    arena_deinit(&a);
}

static void copies_are_terminated_and_independent(void **state)
{
    (void)state;
    struct arena a;
    char text[] = "abc";
    arena_init(&a);
    span copy = arena_copy(&a, (span){text, 2});
    text[0] = 'X';
    assert_int_equal(copy.len, 2);
    assert_string_equal(copy.ptr, "ab");
    assert_string_equal(arena_cstr(&a, SPAN_NONE), "");
    arena_deinit(&a);
}

static void small_allocations_are_zeroed_and_strings_terminated(void **state)
{
    (void)state;
    int *numbers = mem_new_array(int, 4);
    assert_int_equal(numbers[3], 0);
    numbers = mem_realloc(numbers, 64 * sizeof *numbers);
    free(numbers);
    char *copy = mem_strndup("queen", 3);
    assert_string_equal(copy, "que");
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_all_sizes_are_zeroed_aligned_and_apart),
        cmocka_unit_test(a_big_object_does_not_end_the_current_block),
        cmocka_unit_test(after_deinit_it_can_be_used_again),
        cmocka_unit_test(copies_are_terminated_and_independent),
        cmocka_unit_test(small_allocations_are_zeroed_and_strings_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
