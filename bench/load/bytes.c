/* Bytes that grow at their end. */
#include "load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append(struct bytes *to, const void *data, size_t count) {
    if (to->length + count > to->room) {
        size_t room = to->room == 0 ? 512 : to->room;
        while (room < to->length + count) room *= 2;
        to->data = realloc(to->data, room);
        if (to->data == NULL) fail("out of memory");
        to->room = room;
    }
    memcpy(to->data + to->length, data, count);
    to->length += count;
}

void append_text(struct bytes *to, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (count < 0 || (size_t)count >= sizeof text) fail("a text of the load is too long");
    append(to, text, (size_t)count);
}

void empty(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}
