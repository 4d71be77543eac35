#include "base/keyed_hash.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

struct hash_key hash_key_new(void)
{
	struct hash_key key;
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) == (ssize_t)sizeof(key))
		return key;
	// Early in the boot, or under a system call filter: the random bytes that the kernel passed at program start.
	const void *random = (const void *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr): an address
	if (random != NULL)
		memcpy(&key, random, sizeof(key));
	else
		key = (struct hash_key){{(uintptr_t)&key, (uintptr_t)&hash_key_new}};
	return key;
}

uint64_t keyed_hash(const struct hash_key *key, const void *bytes, size_t size)
{
	struct sip_state s = sip_begin(key);
	const unsigned char *at = bytes;
	uint64_t last = (uint64_t)size << 56, word;
	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sip_word(&s, word);
	}
	for (size_t i = 0; i < size; i++)
		last |= (uint64_t)at[i] << 8 * i;
	return sip_end(&s, last);
}
