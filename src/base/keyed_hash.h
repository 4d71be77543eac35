/* Hashes for untrusted keys: numbers and names from measured programs, texts of files. Without the secret key nobody can
 * construct keys that collide, so no table degrades to a linear search.
 *
 * SipHash-1-3: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; the variant that Python, Rust and Ruby use
 * for their tables. Multiplying and folding with a secret seed is not enough: differences in the top bits cancel for every
 * seed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t words[2];
};

// Returns a random key; each table has its own.
struct hash_key hash_key_new(void);
uint64_t keyed_hash(const struct hash_key *key, const void *bytes, size_t size);

struct sip_state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t sip_rotate(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static inline void sip_round(struct sip_state *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
	s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
	s->v0 = sip_rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
	s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
	s->v2 = sip_rotate(s->v2, 32);
}

static inline void sip_word(struct sip_state *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

static inline struct sip_state sip_begin(const struct hash_key *key)
{
	return (struct sip_state){
		.v0 = key->words[0] ^ UINT64_C(0x736f6d6570736575),
		.v1 = key->words[1] ^ UINT64_C(0x646f72616e646f6d),
		.v2 = key->words[0] ^ UINT64_C(0x6c7967656e657261),
		.v3 = key->words[1] ^ UINT64_C(0x7465646279746573),
	};
}

// `last`: the bytes that do not fill a word, with the total length in the top byte.
static inline uint64_t sip_end(struct sip_state *s, uint64_t last)
{
	sip_word(s, last);
	s->v2 ^= 0xff;
	sip_round(s);
	sip_round(s);
	sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

// Equals keyed_hash of the number's eight bytes on a little-endian machine.
static inline uint64_t keyed_hash_u64(const struct hash_key *key, uint64_t number)
{
	struct sip_state s = sip_begin(key);
	sip_word(&s, number);
	return sip_end(&s, (uint64_t)sizeof(number) << 56);
}
