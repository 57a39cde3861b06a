/*
 * The load of every system that Ferry is compared with: many devices and a few publishers on one thread, as `ferry
 * bench` is for the gateway: same payloads, same draws, same windows, one send per socket and read. What a system wants
 * to hear is in its driver; the rest is the same for all.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>

enum { STAMP_BYTES = 16 };
static const uint64_t SECOND = 1000000000;

struct bytes {
    uint8_t *data;
    size_t length, room;
};

void append(struct bytes *to, const void *data, size_t count);
__attribute__((format(printf, 2, 3))) void append_text(struct bytes *to, const char *format, ...);
void empty(struct bytes *bytes);

enum phase { AWAY, COMING, HERE, LEAVING };

/* A connection of the load: a device's or a publisher's. Devices come first in `links`, then publishers. */
struct link {
    int descriptor; /* -1 while there is none */
    uint32_t index; /* among devices, or among publishers */
    uint8_t phase;
    bool is_publisher, is_registered, is_settled, is_waiting_to_write;
    uint32_t received; /* messages since it came */
    uint32_t number;   /* the driver's: what it last named */
    struct bytes partial, output;
    /* A publisher's: when what is not answered was due, a ring of options.pipeline. */
    uint64_t *due;
    uint32_t due_head, unanswered;
};

/* What differs from system to system. Bytes are appended to `output`; the load sends them. The readers take whole
 * messages off the front and answer how many bytes they had, or -1 for what makes no sense. */
struct driver {
    const char *name;
    void (*greet)(struct link *device);
    ssize_t (*device_read)(struct link *device, const uint8_t *data, size_t count);
    /* NULL: the system keeps nothing for devices that are away. */
    void (*leave)(struct link *device);
    void (*publisher_greet)(struct link *publisher);
    ssize_t (*publisher_read)(struct link *publisher, const uint8_t *data, size_t count);
    void (*publish)(struct link *publisher, uint32_t device, const uint8_t *payload, size_t count);
};

extern const struct driver floor_driver, mqtt_driver, nats_driver, redis_driver, redis_streams_driver;

/* What drivers tell the load. */
void load_welcomed(struct link *link);
void load_delivered(struct link *device, const uint8_t *payload, size_t count);
void load_accepted(struct link *publisher, uint32_t count);
void load_refused(struct link *publisher);
/* Whose topic a device reads: its own, or in a broadcast that of the first. */
uint32_t load_channel(const struct link *device);
/* Whether a device has what it came for, and will leave. */
bool load_is_done(const struct link *device);

struct options {
    const struct driver *driver;
    const char *mode;
    uint16_t device_port, publisher_port;
    uint32_t devices, messages, seconds, warm_up, payload_bytes, connections, pipeline, rate, outstanding;
    int server_process; /* 0: not told */
    bool is_broadcast;
};

struct tally {
    uint64_t welcomed, left, published, accepted, refused, delivered, failed;
};

struct histogram {
    uint32_t buckets[59 * 64];
    uint64_t count, maximum;
};

/* What a process has used; read from /proc. */
struct gauge {
    double processor_seconds;
    uint64_t resident, anonymous;
};

struct window {
    struct tally before, after;
    double seconds, load_seconds, server_seconds;
    struct gauge gauge;
    uint64_t start;
};

extern struct options options;
extern struct tally tally;
extern struct histogram deliveries, answers;
extern uint64_t now;

/* load.c */
enum plan { STAY, LEAVE, COLLECT };
void load_open(void);
void load_attach(uint32_t from, uint32_t to, enum plan plan, const char *what);
void load_open_publishers(void);
void load_rest(double seconds, const char *what);
struct link *load_publisher(uint32_t index);
void load_begin(const char *what);
void load_step(int milliseconds);
void load_flush(struct link *link);

/* publish.c */
struct window load_publish(const char *what, uint64_t limit, uint32_t seconds, bool to_all);
struct window load_broadcast(uint32_t messages);
void load_drain(void);

/* report.c */
uint64_t clock_nanoseconds(void);
double own_processor_seconds(void);
struct gauge gauge_read(int process);
void histogram_reset(struct histogram *histogram);
void histogram_record(struct histogram *histogram, uint64_t nanoseconds);
struct window window_begin(void);
void window_end(struct window *window);
void progress(const char *what, const struct tally *before, double seconds);
void report_begin(void);
void report_open(const char *name);
void report_close(void);
void report_number(const char *name, double value, int digits);
enum unit { DELIVERED, ACCEPTED, WELCOMED };
void report_window(const struct window *window, enum unit unit);
void report_latency(const char *name, const struct histogram *histogram);
void report_end(uint64_t lost);
noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

#endif
