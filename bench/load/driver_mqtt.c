/* MQTT 3.1.1: persistent sessions, QoS 1 on both sides, a topic for each device. Publishers do not wait for PUBACK. */
#include "load.h"

#include <stdio.h>
#include <string.h>

enum { CONNACK = 2, PUBLISH = 3, PUBACK = 4, SUBACK = 9, PINGRESP = 13 };

static void number16(struct bytes *to, size_t value) {
    uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};
    append(to, bytes, 2);
}

static void head(struct bytes *to, uint8_t first, size_t length) {
    append(to, &first, 1);
    do {
        uint8_t digit = length & 127;
        length >>= 7;
        if (length > 0) digit |= 128;
        append(to, &digit, 1);
    } while (length > 0);
}

static void text(struct bytes *to, const char *value) {
    number16(to, strlen(value));
    append(to, value, strlen(value));
}

static void connect_packet(struct link *link, const char *client, bool is_clean) {
    head(&link->output, 0x10, 10 + 2 + strlen(client));
    text(&link->output, "MQTT");
    // Level 4; keep-alive 0: off, since runs are short.
    uint8_t rest[4] = {4, is_clean ? 2 : 0, 0, 0};
    append(&link->output, rest, sizeof rest);
    text(&link->output, client);
}

static void topic_of(uint32_t device, char topic[16]) { snprintf(topic, 16, "d/%07u", device % 10000000); }

static void greet(struct link *device) {
    char client[16], topic[16];
    snprintf(client, sizeof client, "d%07u", device->index % 10000000);
    connect_packet(device, client, false);
    if (device->is_registered) return;
    topic_of(load_channel(device), topic);
    head(&device->output, 0x82, 2 + 2 + strlen(topic) + 1);
    number16(&device->output, 1);
    text(&device->output, topic);
    append(&device->output, "\1", 1);
}

/* The size of the whole packet at the front (0: not whole, -1: malformed), and where its body begins. */
static ssize_t whole(const uint8_t *data, size_t count, size_t *body) {
    size_t length = 0;
    for (size_t at = 1; at < count; at++) {
        length |= (size_t)(data[at] & 127) << 7 * (at - 1);
        if (!(data[at] & 128)) {
            *body = at + 1;
            return at + 1 + length <= count ? (ssize_t)(at + 1 + length) : 0;
        }
        if (at == 4) return -1;
    }
    return 0;
}

static bool message(struct link *device, uint8_t first, const uint8_t *data, size_t count) {
    if (count < 2) return false;
    size_t topic = (size_t)data[0] << 8 | data[1];
    if ((first & 6) != 2 || count < 2 + topic + 2) return false;
    load_delivered(device, data + 2 + topic + 2, count - 2 - topic - 2);
    uint8_t acknowledgement[4] = {0x40, 2, data[2 + topic], data[3 + topic]};
    append(&device->output, acknowledgement, sizeof acknowledgement);
    return true;
}

static ssize_t device_read(struct link *device, const uint8_t *data, size_t count) {
    size_t used = 0, body = 0;
    ssize_t size;
    while ((size = whole(data + used, count - used, &body)) > 0) {
        const uint8_t *packet = data + used;
        size_t length = (size_t)size - body;
        switch (packet[0] >> 4) {
        case CONNACK:
            if (length != 2 || packet[body + 1] != 0) return -1;
            if (device->is_registered) load_welcomed(device);
            break;
        case SUBACK:
            if (length != 3 || packet[body + 2] != 1) return -1;
            load_welcomed(device);
            break;
        case PUBLISH:
            if (!message(device, packet[0], packet + body, length)) return -1;
            break;
        case PINGRESP: break;
        default: return -1;
        }
        used += (size_t)size;
    }
    return size < 0 ? -1 : (ssize_t)used;
}

static void leave(struct link *device) { head(&device->output, 0xe0, 0); }

static void publisher_greet(struct link *publisher) {
    char client[16];
    snprintf(client, sizeof client, "p%07u", publisher->index % 10000000);
    connect_packet(publisher, client, true);
}

static ssize_t publisher_read(struct link *publisher, const uint8_t *data, size_t count) {
    size_t used = 0, body = 0;
    uint32_t accepted = 0;
    ssize_t size;
    while ((size = whole(data + used, count - used, &body)) > 0) {
        if (data[used] >> 4 == PUBACK) {
            accepted++;
        } else if (data[used] >> 4 == CONNACK && data[used + body + 1] == 0) {
            load_welcomed(publisher);
        } else {
            return -1;
        }
        used += (size_t)size;
    }
    load_accepted(publisher, accepted);
    return size < 0 ? -1 : (ssize_t)used;
}

static void publish(struct link *publisher, uint32_t device, const uint8_t *payload, size_t count) {
    char topic[16];
    topic_of(device, topic);
    publisher->number = publisher->number % 65535 + 1;
    head(&publisher->output, 0x32, 2 + strlen(topic) + 2 + count);
    text(&publisher->output, topic);
    number16(&publisher->output, publisher->number);
    append(&publisher->output, payload, count);
}

const struct driver mqtt_driver = {
    .name = "mosquitto",
    .greet = greet,
    .device_read = device_read,
    .leave = leave,
    .publisher_greet = publisher_greet,
    .publisher_read = publisher_read,
    .publish = publish,
};
