#ifndef CSIMDJSON_H
#define CSIMDJSON_H
#ifdef __cplusplus
extern "C" {
#endif
const char *csimdjson_version(void);
#ifdef __cplusplus
}
#endif
#endif
