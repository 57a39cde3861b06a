// The part of libcurl that receipts need: many POST requests at once from one thread, which waits for all of them and for a
// descriptor of its own. A client belongs to one thread.
#ifndef CCURL_H
#define CCURL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ccurl_client ccurl_client;

// How one request ended.
typedef struct {
    uint64_t token;
    // Of the answer, 100...999; 0: there was none.
    int32_t status;
    // Seconds of the answer's Retry-After; 0 where it has none.
    int64_t retry_after;
    // Why there was no answer; a text of libcurl's, for ever valid.
    const char *failure;
} ccurl_result;

// NULL when there is no memory, or libcurl cannot start.
ccurl_client *ccurl_create(void);
// Ends all requests that are under way.
void ccurl_destroy(ccurl_client *client);
// Begins to send `body`, which is copied, to an http or https address. Redirects are not followed, certificates are checked
// against `authority_file` or, when it is NULL, against what the system trusts. An answer counts when its head is complete;
// its body is thrown away. 1, or 0 when the request could not be begun.
int ccurl_post(ccurl_client *client, uint64_t token, const char *url, const char *authority_file,
               const char *content_type, const uint8_t *body, size_t count, long connect_milliseconds,
               long total_milliseconds);
// Works on all requests and waits up to `milliseconds`, for them or until `descriptor` is readable.
void ccurl_wait(ccurl_client *client, int descriptor, int milliseconds);
// 1 and the next request that has ended, or 0.
int ccurl_next(ccurl_client *client, ccurl_result *result);

#endif
