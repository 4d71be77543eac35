// Hash of tables with keys from untrusted input. Expected values are from an independent implementation: CPython 3.11,
// where hash(bytes) is SipHash-1-3, with PYTHONHASHSEED=0 (key 0).
#include "base/keyed_hash.h"

#include "rows.h"

#include <string.h>

struct vector {
	const char *text;
	uint64_t hash;
};

static void values(void **state)
{
	static const struct vector vectors[] = {
		{"a", UINT64_C(0x407448d2b89b1813)},
		{"abcdefg", UINT64_C(0x6db12aae9070f506)},
		{"abcdefgh", UINT64_C(0x3f7b849c0b8e35ea)},
		{"abcdefghi", UINT64_C(0xf89b34a3d11eb6e5)},
		{"0123456789abcdef", UINT64_C(0x1d42b30f7e060c24)},
		{"the quick brown fox", UINT64_C(0x5a17575ad3449cba)},
	};
	const struct hash_key zero = {0};
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_true(keyed_hash(&zero, vectors[i].text, strlen(vectors[i].text)) == vectors[i].hash);
}

static void a_number_is_its_bytes(void **state)
{
	const struct hash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
	static const unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	assert_true(keyed_hash_u64(&key, UINT64_C(0x0807060504030201)) == keyed_hash(&key, bytes, sizeof(bytes)));
}

static void keys_differ(void **state)
{
	const struct hash_key a = hash_key_new(), b = hash_key_new();
	assert_memory_not_equal(&a, &b, sizeof(a));
	assert_true(keyed_hash_u64(&a, 1) != keyed_hash_u64(&b, 1));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "SipHash-1-3: equal to an independent implementation", values);
	ROWS_ADD_ONE(&tests, "the hash of a number is that of its eight bytes", a_number_is_its_bytes);
	ROWS_ADD_ONE(&tests, "each generated key is different", keys_differ);
	return rows_run(&tests, "keyed_hash");
}
