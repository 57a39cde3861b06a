/* Clocks, counters, and the line of JSON at the end, with the names that `ferry bench` uses. Latencies are microseconds. */
#define _GNU_SOURCE
#include "load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

noreturn void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

uint64_t clock_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

double own_processor_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static uint64_t kilobytes(const char *status, const char *name) {
    const char *line = strstr(status, name);
    return line == NULL ? 0 : strtoull(line + strlen(name), NULL, 10) * 1024;
}

static size_t contents(int process, const char *name, char *into, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", process, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail("there is no process %d", process);
    size_t count = fread(into, 1, room - 1, file);
    fclose(file);
    into[count] = 0;
    return count;
}

struct gauge gauge_read(int process) {
    struct gauge gauge = {0};
    if (process == 0) return gauge;
    char text[8192];
    contents(process, "stat", text, sizeof text);
    // proc(5): the name is the second field, in parentheses, and may hold anything; times are the 14th and 15th.
    const char *at = strrchr(text, ')');
    unsigned long user = 0, system = 0;
    if (at == NULL || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) {
        fail("/proc/%d/stat cannot be read", process);
    }
    gauge.processor_seconds = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    contents(process, "status", text, sizeof text);
    gauge.resident = kilobytes(text, "VmRSS:");
    gauge.anonymous = kilobytes(text, "RssAnon:");
    return gauge;
}

/* Buckets grow with what they count: 64 for each power of two, so that none is more than 1.6 % wide. */
static size_t bucket(uint64_t value) {
    if (value < 64) return (size_t)value;
    int shift = 63 - __builtin_clzll(value) - 6;
    return (size_t)(shift + 1) * 64 + (size_t)(value >> shift) - 64;
}

static uint64_t bucket_value(size_t index) {
    if (index < 64) return index;
    size_t shift = index / 64 - 1;
    return ((uint64_t)(index % 64) + 64) << shift;
}

void histogram_reset(struct histogram *histogram) { memset(histogram, 0, sizeof *histogram); }

void histogram_record(struct histogram *histogram, uint64_t nanoseconds) {
    histogram->buckets[bucket(nanoseconds)]++;
    histogram->count++;
    if (nanoseconds > histogram->maximum) histogram->maximum = nanoseconds;
}

static double percentile(const struct histogram *histogram, double share) {
    uint64_t wanted = (uint64_t)((double)histogram->count * share + 0.999999), seen = 0;
    for (size_t index = 0; index < sizeof histogram->buckets / sizeof *histogram->buckets; index++) {
        seen += histogram->buckets[index];
        if (seen >= wanted) return (double)bucket_value(index) / 1e3;
    }
    return (double)histogram->maximum / 1e3;
}

struct window window_begin(void) {
    struct window window = {.before = tally, .gauge = gauge_read(options.server_process)};
    window.load_seconds = own_processor_seconds();
    window.start = clock_nanoseconds();
    return window;
}

void window_end(struct window *window) {
    window->after = tally;
    window->seconds = (double)(clock_nanoseconds() - window->start) / 1e9;
    window->load_seconds = own_processor_seconds() - window->load_seconds;
    struct gauge gauge = gauge_read(options.server_process);
    window->server_seconds = gauge.processor_seconds - window->gauge.processor_seconds;
    window->gauge = gauge;
}

void progress(const char *what, const struct tally *before, double seconds) {
    fprintf(stderr, "%s: %.0f welcomed/s, %.0f accepted/s, %.0f delivered/s\n", what,
            (double)(tally.welcomed - before->welcomed) / seconds, (double)(tally.accepted - before->accepted) / seconds,
            (double)(tally.delivered - before->delivered) / seconds);
}

/* The line of JSON. */

static bool is_first;

static void name(const char *text) {
    printf(is_first ? "\"%s\":" : ",\"%s\":", text);
    is_first = false;
}

void report_begin(void) {
    printf("{\"system\":\"%s\",\"mode\":\"%s\"", options.driver->name, options.mode);
    is_first = false;
    report_number("devices", options.devices, 0);
    report_number("payloadBytes", options.payload_bytes, 0);
    if (options.rate > 0) report_number("rate", options.rate, 0);
}

void report_open(const char *text) {
    name(text);
    putchar('{');
    is_first = true;
}

void report_close(void) {
    putchar('}');
    is_first = false;
}

void report_number(const char *text, double value, int digits) {
    name(text);
    printf("%.*f", digits, value);
}

static void counted(const char *text, uint64_t count, double seconds) {
    if (count == 0) return;
    char rate[64];
    snprintf(rate, sizeof rate, "%sPerSecond", text);
    report_number(text, (double)count, 0);
    report_number(rate, (double)count / seconds, 1);
}

void report_window(const struct window *window, enum unit unit) {
    uint64_t welcomed = window->after.welcomed - window->before.welcomed;
    uint64_t accepted = window->after.accepted - window->before.accepted;
    uint64_t delivered = window->after.delivered - window->before.delivered;
    report_number("seconds", window->seconds, 3);
    counted("welcomed", welcomed, window->seconds);
    counted("accepted", accepted, window->seconds);
    counted("delivered", delivered, window->seconds);
    report_number("refused", (double)(window->after.refused - window->before.refused), 0);
    report_number("loadCpuSeconds", window->load_seconds, 3);
    if (options.server_process == 0) return;
    uint64_t count = unit == DELIVERED ? delivered : unit == ACCEPTED ? accepted : welcomed;
    report_open("gateway");
    report_number("cpuSeconds", window->server_seconds, 3);
    report_number("cores", window->server_seconds / window->seconds, 3);
    if (count > 0) report_number("cpuSecondsPerMillion", window->server_seconds * 1e6 / (double)count, 2);
    report_number("rssBytes", (double)window->gauge.resident, 0);
    report_number("rssAnonBytes", (double)window->gauge.anonymous, 0);
    report_close();
}

void report_latency(const char *text, const struct histogram *histogram) {
    if (histogram->count == 0) return;
    report_open(text);
    report_number("p50", percentile(histogram, 0.5), 1);
    report_number("p90", percentile(histogram, 0.9), 1);
    report_number("p99", percentile(histogram, 0.99), 1);
    report_number("p999", percentile(histogram, 0.999), 1);
    report_number("max", (double)histogram->maximum / 1e3, 1);
    report_close();
}

void report_end(uint64_t lost) {
    report_number("lost", (double)lost, 0);
    report_number("devicesLost", (double)tally.failed, 0);
    puts("}");
}
