#include "CCurl.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

struct ccurl_client {
    CURLM *multi;
    struct transfer *first;
    // Of transfers that were begun and not told.
    int count;
};

struct transfer {
    CURL *easy;
    struct curl_slist *headers;
    uint64_t token;
    // Bytes of the answer's head and body.
    size_t head, taken;
    // The end of the head was read, and it was not that of a "100 Continue".
    int is_answered;
    struct transfer *next, **previous;
};

// Of an answer's body nothing is kept; one that goes on beyond this is cut off, and its status counts.
static const size_t answer_limit = 64 * 1024;

static size_t throw_away(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    struct transfer *transfer = context;
    transfer->taken += size * count;
    return transfer->taken > answer_limit ? 0 : size * count;
}

// A head has an end. One that goes on beyond this is no answer; libcurl would keep all of it.
static const size_t head_limit = 64 * 1024;

static size_t look_at_head(char *bytes, size_t size, size_t count, void *context) {
    struct transfer *transfer = context;
    size_t length = size * count;
    transfer->head += length;
    if (transfer->head > head_limit) return 0;
    if ((length == 2 && memcmp(bytes, "\r\n", 2) == 0) || (length == 1 && bytes[0] == '\n')) {
        long status = 0;
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        if (status >= 200) transfer->is_answered = 1;
    }
    return length;
}

ccurl_client *ccurl_create(void) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return NULL;
    ccurl_client *client = calloc(1, sizeof *client);
    if (client == NULL) return NULL;
    client->multi = curl_multi_init();
    if (client->multi == NULL) {
        free(client);
        return NULL;
    }
    return client;
}

static void end(ccurl_client *client, struct transfer *transfer) {
    if (transfer->previous != NULL) {
        *transfer->previous = transfer->next;
        if (transfer->next != NULL) transfer->next->previous = transfer->previous;
        curl_multi_remove_handle(client->multi, transfer->easy);
        client->count -= 1;
    }
    if (transfer->easy != NULL) curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    free(transfer);
}

void ccurl_destroy(ccurl_client *client) {
    while (client->first != NULL) end(client, client->first);
    curl_multi_cleanup(client->multi);
    free(client);
}

static int append_header(struct transfer *transfer, const char *name, const char *value) {
    size_t count = strlen(name) + strlen(value) + 1;
    char *line = malloc(count);
    if (line == NULL) return 0;
    strcpy(line, name);
    strcat(line, value);
    struct curl_slist *longer = curl_slist_append(transfer->headers, line);
    free(line);
    if (longer == NULL) return 0;
    transfer->headers = longer;
    return 1;
}

static int set_up(struct transfer *transfer, const char *url, const char *authority_file, const char *content_type,
                  const uint8_t *body, size_t count, long connect_milliseconds, long total_milliseconds) {
    CURL *easy = transfer->easy;
    // Without the second, libcurl waits for a "100 Continue" that many servers do not send.
    if (!append_header(transfer, "Content-Type: ", content_type) || !append_header(transfer, "Expect:", "")) return 0;
    int ok = curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, (const char *)body) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_USERAGENT, "ferry") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, throw_away) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, look_at_head) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK;
    if (authority_file != NULL) ok = ok && curl_easy_setopt(easy, CURLOPT_CAINFO, authority_file) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_milliseconds) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, total_milliseconds) == CURLE_OK;
    // A name that is being looked up when the time is over must hold up nobody: without this, libcurl waits for the look-up.
    ok = ok && curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    // The environment must not send receipts somewhere else.
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK;
    return ok;
}

int ccurl_post(ccurl_client *client, uint64_t token, const char *url, const char *authority_file,
               const char *content_type, const uint8_t *body, size_t count, long connect_milliseconds,
               long total_milliseconds) {
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL) return 0;
    transfer->token = token;
    transfer->easy = curl_easy_init();
    if (transfer->easy == NULL ||
        !set_up(transfer, url, authority_file, content_type, body, count, connect_milliseconds, total_milliseconds) ||
        curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK) {
        end(client, transfer);
        return 0;
    }
    transfer->next = client->first;
    transfer->previous = &client->first;
    if (client->first != NULL) client->first->previous = &transfer->next;
    client->first = transfer;
    client->count += 1;
    return 1;
}

void ccurl_wait(ccurl_client *client, int descriptor, int milliseconds) {
    int running = 0;
    curl_multi_perform(client->multi, &running);
    // What has ended by now is to be told at once.
    if (running < client->count) milliseconds = 0;
    struct curl_waitfd own = {.fd = descriptor, .events = CURL_WAIT_POLLIN};
    curl_multi_poll(client->multi, &own, 1, milliseconds, NULL);
    curl_multi_perform(client->multi, &running);
}

int ccurl_next(ccurl_client *client, ccurl_result *result) {
    int waiting = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(client->multi, &waiting)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        struct transfer *transfer = NULL;
        long status = 0;
        curl_off_t retry_after = 0;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RETRY_AFTER, &retry_after);
        // An answer whose body is too long, too slow or broken off was an answer.
        int is_answered = status >= 100 && (code == CURLE_OK || transfer->is_answered);
        result->token = transfer->token;
        result->status = is_answered ? (int32_t)status : 0;
        result->retry_after = retry_after;
        result->failure = is_answered ? NULL : curl_easy_strerror(code);
        end(client, transfer);
        return 1;
    }
    return 0;
}
