#include "COpenSSL.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

int copenssl_random(uint8_t *out, size_t count) {
    return count <= INT_MAX && RAND_bytes(out, (int)count) == 1;
}

static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

static void fetch_sha256(void) { sha256 = EVP_MD_fetch(NULL, "SHA256", NULL); }

// With the algorithm fetched once: EVP_sha256() stands for a search for it, under locks, at every use.
int copenssl_sha256(const uint8_t *bytes, size_t count, uint8_t out[32]) {
    pthread_once(&sha256_once, fetch_sha256);
    return sha256 != NULL && EVP_Digest(bytes, count, out, NULL, sha256, NULL) == 1;
}

// RFC 2104 over the digest that was fetched once: HMAC() searches for its algorithms, under locks, at every call.
static int keyed_half(EVP_MD_CTX *context, const uint8_t block[64], uint8_t pad, const uint8_t *bytes, size_t count,
                      uint8_t out[32]) {
    uint8_t padded[64];
    for (int i = 0; i < 64; i++) padded[i] = block[i] ^ pad;
    int ok = EVP_DigestInit_ex2(context, sha256, NULL) == 1 && EVP_DigestUpdate(context, padded, sizeof padded) == 1 &&
             EVP_DigestUpdate(context, bytes, count) == 1 && EVP_DigestFinal_ex(context, out, NULL) == 1;
    OPENSSL_cleanse(padded, sizeof padded);
    return ok;
}

int copenssl_hmac_sha256(const uint8_t *key, size_t key_count, const uint8_t *bytes, size_t count, uint8_t out[32]) {
    uint8_t block[64] = {0};
    uint8_t inner[32];
    pthread_once(&sha256_once, fetch_sha256);
    if (sha256 == NULL) return 0;
    if (key_count > sizeof block) {
        if (!copenssl_sha256(key, key_count, block)) return 0;
    } else if (key_count > 0) {
        memcpy(block, key, key_count);
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int ok = context != NULL && keyed_half(context, block, 0x36, bytes, count, inner) &&
             keyed_half(context, block, 0x5c, inner, sizeof inner, out);
    EVP_MD_CTX_free(context);
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
