/* Options, and the modes as `ferry bench` has them. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {
    .mode = "online",
    .devices = 1000,
    .messages = 10,
    .seconds = 5,
    .warm_up = 1,
    .payload_bytes = 256,
    .connections = 4,
    .pipeline = 256,
    .outstanding = 1000,
};

static const struct driver *const drivers[] = {
    &floor_driver, &mqtt_driver, &nats_driver, &redis_driver, &redis_streams_driver,
};

static const char usage[] =
    "usage: load --system floor|mosquitto|nats|redis|redis-streams --device-port PORT --publisher-port PORT\n"
    "            [--mode online|offline|flush|broadcast|idle] [--devices N] [--messages M (to each; not online)]\n"
    "            [--seconds S] [--warm-up S] [--payload-bytes B] [--connections C] [--pipeline P (on each)]\n"
    "            [--rate R] [--outstanding N] [--server-pid PID]\n";

static uint32_t number(const char *name, const char *text, uint32_t least, uint32_t most) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == 0 || *end != 0 || value < least || value > most) fail("%s: %u…%u", name, least, most);
    return (uint32_t)value;
}

static void read_option(const char *name, const char *value) {
    if (strcmp(name, "--system") == 0) {
        for (size_t index = 0; index < sizeof drivers / sizeof *drivers; index++) {
            if (strcmp(drivers[index]->name, value) == 0) options.driver = drivers[index];
        }
        if (options.driver == NULL) fail("--system %s is not known", value);
    } else if (strcmp(name, "--mode") == 0) options.mode = value;
    else if (strcmp(name, "--device-port") == 0) options.device_port = (uint16_t)number(name, value, 1, 65535);
    else if (strcmp(name, "--publisher-port") == 0) options.publisher_port = (uint16_t)number(name, value, 1, 65535);
    else if (strcmp(name, "--devices") == 0) options.devices = number(name, value, 1, 9999999);
    else if (strcmp(name, "--messages") == 0) options.messages = number(name, value, 1, 10000);
    else if (strcmp(name, "--seconds") == 0) options.seconds = number(name, value, 1, 86400);
    else if (strcmp(name, "--warm-up") == 0) options.warm_up = number(name, value, 0, 3600);
    else if (strcmp(name, "--payload-bytes") == 0) options.payload_bytes = number(name, value, 16, 65535);
    else if (strcmp(name, "--connections") == 0) options.connections = number(name, value, 1, 1000);
    else if (strcmp(name, "--pipeline") == 0) options.pipeline = number(name, value, 1, 4096);
    else if (strcmp(name, "--rate") == 0) options.rate = number(name, value, 1, 10000000);
    else if (strcmp(name, "--outstanding") == 0) options.outstanding = number(name, value, 1, 1000000);
    else if (strcmp(name, "--server-pid") == 0) options.server_process = (int)number(name, value, 1, INT32_MAX);
    else fail("%s is not known\n%s", name, usage);
}

static uint64_t missing(uint64_t wanted, uint64_t had) { return wanted > had ? wanted - had : 0; }

static void online(void) {
    load_attach(0, options.devices, STAY, "connecting");
    load_open_publishers();
    if (options.warm_up > 0) load_publish("warming up", UINT64_MAX, options.warm_up, false);
    struct window window = load_publish("online", UINT64_MAX, options.seconds, false);
    report_begin();
    report_window(&window, DELIVERED);
    report_latency("latency", &deliveries);
    report_latency("acceptLatency", &answers);
    load_drain();
    report_end(missing(tally.published, tally.delivered + tally.refused));
}

/* Everybody comes once and leaves; then the messages come. */
static struct window fill(void) {
    if (options.driver->leave == NULL) fail("%s keeps nothing for devices that are away", options.driver->name);
    load_attach(0, options.devices, LEAVE, "registering");
    load_open_publishers();
    return load_publish("offline", (uint64_t)options.devices * options.messages, 0, true);
}

static void offline(void) {
    struct window window = fill();
    report_begin();
    report_window(&window, ACCEPTED);
    report_latency("acceptLatency", &answers);
    report_end(missing(tally.published, tally.accepted + tally.refused));
}

static void flush(void) {
    struct window filled = fill();
    report_begin();
    report_open("fill");
    report_window(&filled, ACCEPTED);
    report_latency("acceptLatency", &answers);
    report_close();
    struct window window = window_begin();
    load_attach(0, options.devices, COLLECT, "collecting");
    window_end(&window);
    report_window(&window, DELIVERED);
    report_end(missing(tally.published, tally.delivered + tally.refused));
}

/* Messages to everybody, one after the other. */
static void broadcast(void) {
    options.is_broadcast = true;
    load_attach(0, options.devices, STAY, "connecting");
    load_open_publishers();
    struct window window = load_broadcast(options.messages);
    report_begin();
    report_window(&window, DELIVERED);
    report_latency("latency", &deliveries);
    report_end(missing(tally.published * options.devices, tally.delivered));
}

/* The memory at two counts of connections; the slope between them is one connection's. */
static void idle(void) {
    uint32_t few = options.devices / 10 < 1000 ? options.devices / 10 : 1000;
    if (options.server_process == 0 || few == 0) fail("idle needs --server-pid and ten devices");
    load_attach(0, few, STAY, "connecting");
    load_rest(1, "settling");
    struct gauge low = gauge_read(options.server_process);
    struct window connecting = window_begin();
    load_attach(few, options.devices, STAY, "connecting");
    window_end(&connecting);
    struct window holding = window_begin();
    load_rest(options.seconds, "holding");
    window_end(&holding);
    double grown = options.devices - few;
    report_begin();
    report_window(&connecting, WELCOMED);
    report_number("idleCores", holding.server_seconds / holding.seconds, 3);
    report_number("fromConnections", few, 0);
    report_number("connections", (double)(tally.welcomed - tally.failed), 0);
    report_number("rssBytesPerConnection", ((double)holding.gauge.resident - (double)low.resident) / grown, 1);
    report_number("rssAnonBytesPerConnection", ((double)holding.gauge.anonymous - (double)low.anonymous) / grown, 1);
    report_end(0);
}

int main(int count, char **arguments) {
    if (count % 2 == 0) fail("every option has a value\n%s", usage);
    for (int index = 1; index + 1 < count; index += 2) read_option(arguments[index], arguments[index + 1]);
    if (options.driver == NULL || options.device_port == 0 || options.publisher_port == 0) fail("%s", usage);
    load_open();
    if (strcmp(options.mode, "online") == 0) online();
    else if (strcmp(options.mode, "offline") == 0) offline();
    else if (strcmp(options.mode, "flush") == 0) flush();
    else if (strcmp(options.mode, "broadcast") == 0) broadcast();
    else if (strcmp(options.mode, "idle") == 0) idle();
    else fail("--mode %s is not known", options.mode);
    return 0;
}
