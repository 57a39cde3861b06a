// The hash's own functions, which OpenSSL 3 keeps under this name, are asked directly: by way of EVP, memory is taken and
// wiped for every digest, which costs as much as hashing 300 bytes does.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "COpenSSL.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/md5.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <string.h>

int copenssl_random(uint8_t *out, size_t count) {
    return count <= INT_MAX && RAND_bytes(out, (int)count) == 1;
}

int copenssl_sha256(const uint8_t *bytes, size_t count, uint8_t out[32]) {
    SHA256_CTX context;
    return SHA256_Init(&context) == 1 && (count == 0 || SHA256_Update(&context, bytes, count) == 1) &&
           SHA256_Final(out, &context) == 1;
}

int copenssl_md5(const uint8_t *bytes, size_t count, uint8_t out[16]) {
    MD5_CTX context;
    return MD5_Init(&context) == 1 && (count == 0 || MD5_Update(&context, bytes, count) == 1) &&
           MD5_Final(out, &context) == 1;
}

// RFC 2104. HMAC() searches for its algorithms, under locks, and takes memory at every call.
static int keyed_half(const uint8_t block[64], uint8_t pad, const uint8_t *bytes, size_t count, uint8_t out[32]) {
    SHA256_CTX context;
    uint8_t padded[64];
    for (int i = 0; i < 64; i++) padded[i] = block[i] ^ pad;
    int ok = SHA256_Init(&context) == 1 && SHA256_Update(&context, padded, sizeof padded) == 1 &&
             (count == 0 || SHA256_Update(&context, bytes, count) == 1) && SHA256_Final(out, &context) == 1;
    OPENSSL_cleanse(padded, sizeof padded);
    OPENSSL_cleanse(&context, sizeof context);
    return ok;
}

int copenssl_hmac_sha256(const uint8_t *key, size_t key_count, const uint8_t *bytes, size_t count, uint8_t out[32]) {
    uint8_t block[64] = {0};
    uint8_t inner[32];
    if (key_count > sizeof block) {
        if (!copenssl_sha256(key, key_count, block)) return 0;
    } else if (key_count > 0) {
        memcpy(block, key, key_count);
    }
    int ok = keyed_half(block, 0x36, bytes, count, inner) && keyed_half(block, 0x5c, inner, sizeof inner, out);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(inner, sizeof inner);
    return ok;
}

int copenssl_hkdf_sha256(const uint8_t *key, size_t key_count, const uint8_t *salt, size_t salt_count,
                         const uint8_t *info, size_t info_count, uint8_t *out, size_t out_count) {
    if (key_count > INT_MAX || salt_count > INT_MAX || info_count > INT_MAX) return 0;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    if (context == NULL) return 0;
    int ok = EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
             EVP_PKEY_CTX_set1_hkdf_salt(context, salt, (int)salt_count) == 1 &&
             EVP_PKEY_CTX_set1_hkdf_key(context, key, (int)key_count) == 1 &&
             EVP_PKEY_CTX_add1_hkdf_info(context, info, (int)info_count) == 1 &&
             EVP_PKEY_derive(context, out, &out_count) == 1;
    EVP_PKEY_CTX_free(context);
    return ok;
}

int copenssl_equal(const uint8_t *left, const uint8_t *right, size_t count) {
    return CRYPTO_memcmp(left, right, count) == 0;
}
