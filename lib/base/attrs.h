// attrs.h: compiler attributes used throughout the tree.
#ifndef QUEEN_BASE_ATTRS_H
#define QUEEN_BASE_ATTRS_H

#include <stddef.h>

#define MUST_USE              __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, arg) __attribute__((format(printf, fmt, arg)))
#define NORETURN              __attribute__((noreturn))

// A large local buffer that a call is about to fill. The build zeroes all other locals
// (-ftrivial-auto-var-init), which for 64 KB costs more than a whole request.
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define UNINITIALIZED __attribute__((uninitialized))
#endif
#endif
#ifndef UNINITIALIZED
#define UNINITIALIZED
#endif

#define countof(array)                  (sizeof(array) / sizeof((array)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define container_of_const(ptr, type, member) \
    ((const type *)(const void *)((const char *)(ptr)-offsetof(type, member)))

#endif
