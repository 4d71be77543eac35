#include "span/writer/internal.h"

#include "base/keyed_hash.h"

#include <string.h>
#include <sys/auxv.h>

// SipHash-2-4, the same in all copies of the writer: two rounds per word and four at the end.
static uint64_t sip_hash(const struct hash_key *key, uint64_t word)
{
	const uint64_t words[] = {word, (uint64_t)sizeof(word) << 56};
	struct sip_state s = sip_begin(key);
	for (int i = 0; i < 2; i++) {
		s.v3 ^= words[i];
		sip_round(&s);
		sip_round(&s);
		s.v0 ^= words[i];
	}
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The kernel gives each program image 16 random bytes. The C library derives its stack protector from them, so they
 * must not leave the process: they are used as the key of a keyed hash, and 32 bits of the result reveal nothing about
 * the key. */
uint32_t span_image(void)
{
	struct hash_key key = {0};
	unsigned long random = getauxval(AT_RANDOM);
	if (random != 0)
		memcpy(&key, (const void *)random, sizeof(key)); // NOLINT(performance-no-int-to-ptr)
	return (uint32_t)sip_hash(&key, getauxval(AT_SYSINFO_EHDR));
}
