// JSON reading by simdjson, as plain C: no C++ type and no exception crosses this line.
//
// A parser owns the last document that it read. Values point into it: they are valid until the next parse or the free.
// A parser belongs to one thread at a time.
#ifndef CSIMDJSON_H
#define CSIMDJSON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct csimdjson_parser csimdjson_parser;

/// A place in the parser's document.
typedef struct {
    const void *document;
    size_t index;
} csimdjson_value;

typedef enum {
    CSIMDJSON_OK = 0,
    CSIMDJSON_EMPTY = 1,      ///< no bytes, or white space only
    CSIMDJSON_NOT_UTF8 = 2,   ///< the text is not UTF-8
    CSIMDJSON_TOO_DEEP = 3,   ///< arrays and objects nest deeper than the parser's limit
    CSIMDJSON_TOO_LARGE = 4,  ///< more bytes than the parser was made for
    CSIMDJSON_NUMBER = 5,     ///< a number that no 64-bit integer or finite double holds, or is badly spelled
    CSIMDJSON_STRING = 6,     ///< a bad escape, a lone surrogate, a control character or a missing quote
    CSIMDJSON_SYNTAX = 7,     ///< any other breach of RFC 8259
    CSIMDJSON_NO_MEMORY = 8,
    CSIMDJSON_ABSENT = 9,     ///< the object has no such member
    CSIMDJSON_DUPLICATE = 10, ///< the object has more than one such member
    CSIMDJSON_WRONG_TYPE = 11 ///< the value is of another kind than the one asked for
} csimdjson_status;

typedef enum {
    CSIMDJSON_KIND_NULL = 0,
    CSIMDJSON_KIND_BOOL = 1,
    CSIMDJSON_KIND_INTEGER = 2, ///< fits int64_t
    CSIMDJSON_KIND_NUMBER = 3,  ///< any other number
    CSIMDJSON_KIND_STRING = 4,
    CSIMDJSON_KIND_ARRAY = 5,
    CSIMDJSON_KIND_OBJECT = 6
} csimdjson_kind;

/// NULL when there is no memory.
csimdjson_parser *csimdjson_new(size_t max_bytes, size_t max_depth);
void csimdjson_free(csimdjson_parser *parser);
/// Gives its buffers back; the next parse makes new ones. Values of the text before die.
void csimdjson_shrink(csimdjson_parser *parser);

/// Reads a whole text; copies it, so `bytes` needs no padding and may go. Values of the text before die.
csimdjson_status csimdjson_parse(csimdjson_parser *parser, const uint8_t *bytes, size_t count, csimdjson_value *root);

csimdjson_kind csimdjson_kind_of(csimdjson_value value);
/// The member whose name, escapes resolved, is exactly these bytes.
csimdjson_status csimdjson_member(csimdjson_value object, const uint8_t *name, size_t count, csimdjson_value *member);
/// The string's bytes, escapes resolved: UTF-8, may hold NUL. They live as long as the value.
csimdjson_status csimdjson_string(csimdjson_value value, const uint8_t **bytes, size_t *count);
csimdjson_status csimdjson_int64(csimdjson_value value, int64_t *number);
csimdjson_status csimdjson_bool(csimdjson_value value, int *truth);

/// A walk over an array. Start it, then take until CSIMDJSON_ABSENT.
typedef struct {
    csimdjson_value next;
    csimdjson_value end;
} csimdjson_walk;
csimdjson_status csimdjson_elements(csimdjson_value array, csimdjson_walk *walk);
csimdjson_status csimdjson_next(csimdjson_walk *walk, csimdjson_value *element);

/// Hands the value's JSON text without white space to `sink`, once.
csimdjson_status csimdjson_minify(
    csimdjson_value value, void *context, void (*sink)(void *context, const uint8_t *bytes, size_t count));

#ifdef __cplusplus
}
#endif
#endif
