// version.h: the version of the library.
#ifndef QUEEN_VERSION_H
#define QUEEN_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

const char *queen_version(void); // "1.0.0", of the library linked at run time; static

#ifdef __cplusplus
}
#endif
#endif
