#include "span/writer/image.h"

#include <string.h>
#include <sys/auxv.h>

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
	v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v), sip_round(v);
	v[0] ^= word;
}

// SipHash-2-4 of one word.
static uint64_t sip_hash(const uint64_t key[2], uint64_t word)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573};
	sip_word(v, word);
	sip_word(v, UINT64_C(8) << 56);
	v[2] ^= 0xff;
	sip_round(v), sip_round(v), sip_round(v), sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The kernel gives each image 16 random bytes. The C library makes its stack protector of them, so they may not leave the
 * process: they are the key of a keyed hash, of which 32 bits tell nothing about the key. */
uint32_t span_image(void)
{
	uint64_t key[2] = {0};
	unsigned long random = getauxval(AT_RANDOM);
	if (random != 0)
		memcpy(key, (const void *)random, sizeof(key)); // NOLINT(performance-no-int-to-ptr)
	return (uint32_t)sip_hash(key, getauxval(AT_SYSINFO_EHDR));
}
