// Numbers of keys: in order of first appearance, kept when the table grows; an attacker cannot choose colliding keys.
#include "analysis/keys.h"

#include "rows.h"

enum { MANY = 10000 };

static void in_order(void **state)
{
	struct keys keys = {0};
	assert_true(keys_find(&keys, 7) == KEYS_NONE);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(keys_number(&keys, keys_pair(i, i << 16)), i);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(keys_number(&keys, keys_pair(i, i << 16)), i);
		assert_int_equal(keys_find(&keys, keys_pair(i, i << 16)), i);
	}
	assert_true(keys_find(&keys, keys_pair(MANY, 0)) == KEYS_NONE);
	assert_int_equal(keys.n, MANY);
	keys_finish(&keys);
}

static void secret(void **state)
{
	struct keys a = {0}, b = {0};
	assert_int_equal(keys_number(&a, 1), 0);
	assert_int_equal(keys_number(&b, 1), 0);
	struct hash_key made = a.hash_key;
	assert_memory_not_equal(&made, &b.hash_key, sizeof(made));
	for (uint32_t i = 0; i < MANY; i++)
		keys_number(&a, i);
	assert_memory_equal(&made, &a.hash_key, sizeof(made)); // the same after growing; otherwise known keys are lost
	keys_finish(&a);
	keys_finish(&b);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "10,000 keys: numbered in order of first appearance", in_order);
	ROWS_ADD_ONE(&tests, "each table hashes with a random key of its own", secret);
	return rows_run(&tests, "keys");
}
