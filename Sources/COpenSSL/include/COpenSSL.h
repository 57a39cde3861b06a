// The few primitives of libcrypto that identity and API tokens need. Every function answers 1, or 0 when OpenSSL failed.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <stddef.h>
#include <stdint.h>

int copenssl_random(uint8_t *out, size_t count);
int copenssl_sha256(const uint8_t *bytes, size_t count, uint8_t out[32]);
// For a signature whose form is another service's; nothing here is kept safe by it.
int copenssl_md5(const uint8_t *bytes, size_t count, uint8_t out[16]);
int copenssl_hmac_sha256(const uint8_t *key, size_t key_count, const uint8_t *bytes, size_t count, uint8_t out[32]);
// HKDF (RFC 5869) with SHA-256.
int copenssl_hkdf_sha256(const uint8_t *key, size_t key_count, const uint8_t *salt, size_t salt_count,
                         const uint8_t *info, size_t info_count, uint8_t *out, size_t out_count);
// Equal, in a time that does not depend on where they differ.
int copenssl_equal(const uint8_t *left, const uint8_t *right, size_t count);

#endif
