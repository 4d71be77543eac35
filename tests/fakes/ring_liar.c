/* A hostile program: each act sends the recorder one kind of invalid data. Exit status 0: all of it was sent.
 *
 *	ring_liar unsealed | unshrunk | small | large | odd | file | nothing | magic | many
 *	        one invalid ring: without seals, with one seal only, of another size than stated, with a number of records that is
 *	        no power of two, a file, no descriptor, no ring, sixteen descriptors
 *	ring_liar ahead | back      a valid ring whose head then jumps ahead by 2^60, or back
 *	ring_liar noise SEED        records of random bytes
 *	ring_liar forged            a hello with another process's pid
 *	ring_liar truncate          tries to truncate the memory while it is read
 *	ring_liar silent N          N connections that send nothing, kept for a second
 *	ring_liar flood N           N connections with half a message each
 *	ring_liar fast SECONDS      writes as fast as it can and ignores the tail
 *	ring_liar collide SECONDS   ranges whose numbers collide in a table that is hashed by the golden ratio; then waits
 *	ring_liar cross SECONDS     ends the outermost of 1,024 spans, again and again
 *	ring_liar rings N RECORDS   N full rings of this many records each (0: as many as requested), kept for three seconds
 */
#include "ring_client.h"

static struct ring_hello hello_of(uint32_t n_records, char name[64])
{
	struct ring_hello hello = {.magic = RING_MAGIC,
		.version = RING_VERSION,
		.n_records = n_records,
		.pid = getpid()};
	unsigned n;
	if (!ring_client_address(&n, &hello.token, name))
		exit(3);
	hello.tid = hello.pid;
	return hello;
}

static void bring(const struct ring_hello *hello, const char *name, int fd, int n_fds)
{
	int connection = ring_client_connect(name);
	if (connection < 0 || !ring_client_send(connection, hello, sizeof(*hello), fd, n_fds))
		exit(4);
	close(connection);
}

static void bring_odd(const char *how)
{
	char name[64];
	const int both = F_SEAL_SHRINK | F_SEAL_GROW;
	struct ring_hello hello = hello_of(1024, name);
	size_t bytes = ring_bytes(1024);
	if (strcmp(how, "unsealed") == 0) {
		bring(&hello, name, ring_client_memory(bytes, 0), 1);
	} else if (strcmp(how, "unshrunk") == 0) {
		bring(&hello, name, ring_client_memory(bytes, F_SEAL_GROW), 1);
	} else if (strcmp(how, "small") == 0) {
		bring(&hello, name, ring_client_memory(bytes - 4096, both), 1);
	} else if (strcmp(how, "large") == 0) {
		hello.n_records = 1U << 31;
		bring(&hello, name, ring_client_memory(bytes, both), 1);
	} else if (strcmp(how, "odd") == 0) {
		hello.n_records = 1025;
		bring(&hello, name, ring_client_memory(ring_bytes(1025), both), 1);
	} else if (strcmp(how, "file") == 0) {
		bring(&hello, name, open("/proc/self/exe", O_RDONLY), 1);
	} else if (strcmp(how, "nothing") == 0) {
		bring(&hello, name, -1, 0);
	} else if (strcmp(how, "magic") == 0) {
		bring(&hello, name, ring_client_memory(bytes, both), 1); // zeros inside
	} else {
		bring(&hello, name, ring_client_memory(bytes, both), 16);
	}
}

static struct ring_client honest(void)
{
	struct ring_client client;
	if (!ring_client_open(&client, 9))
		exit(3);
	ring_client_name(&client, 0, "liar");
	ring_client_event(&client, RECORD_BEGIN, 0, 0);
	ring_client_event(&client, RECORD_END, 0, 1);
	return client;
}

static void move_head(int64_t by)
{
	struct ring_client client = honest();
	usleep(100000);
	atomic_fetch_add(&client.header->head, (uint64_t)by);
	usleep(200000);
}

static void noise(uint64_t seed)
{
	struct ring_client client = honest();
	for (int round = 0; round < 50; round++) {
		for (uint32_t i = 0; i <= client.mask; i++) {
			uint64_t words[2];
			for (int w = 0; w < 2; w++)
				words[w] = seed = seed * 6364136223846793005 + 1442695040888963407;
			memcpy(&client.records[i], words, sizeof(words));
			client.records[i].kind &= 0x0f;
		}
		client.head += client.mask / 2;
		ring_client_publish(&client);
		usleep(5000);
		for (int i = 0; !ring_client_has_room(&client, client.mask / 2); i++) { // a head beyond the ring is another case
			if (i == 200)
				return;
			usleep(5000);
		}
	}
}

static void forged(void)
{
	char name[64];
	struct ring_client client = honest();
	struct ring_hello hello = hello_of(1024, name);
	hello.pid = hello.tid = 1;
	int fd = ring_client_memory(ring_bytes(1024), F_SEAL_SHRINK | F_SEAL_GROW);
	client.header = mmap(NULL, ring_bytes(1024), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*client.header = (struct ring_header){.magic = RING_MAGIC,
		.version = RING_VERSION,
		.n_records = 1024,
		.pid = 1};
	client.records = (struct span_record *)((char *)client.header + RING_HEADER_BYTES);
	client.mask = 1023;
	client.head = 0;
	bring(&hello, name, fd, 1);
	ring_client_name(&client, 0, "forged");
	ring_client_event(&client, RECORD_BEGIN, 0, 0);
	ring_client_event(&client, RECORD_END, 0, 1);
	usleep(100000);
}

static void try_to_truncate(void)
{
	char name[64];
	struct ring_hello hello = hello_of(1024, name);
	int fd = ring_client_memory(ring_bytes(1024), F_SEAL_SHRINK | F_SEAL_GROW);
	struct ring_header *header = mmap(NULL, ring_bytes(1024), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*header = (struct ring_header){.magic = RING_MAGIC, .version = RING_VERSION, .n_records = 1024};
	bring(&hello, name, fd, 1);
	for (int i = 0; i < 100; i++) {
		if (ftruncate(fd, 0) == 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0)
			exit(5); // a seal had no effect, or nothing was attempted
		usleep(1000);
	}
}

static void silent(long n)
{
	char name[64];
	hello_of(1024, name);
	for (long i = 0; i < n; i++)
		ring_client_connect(name);
	sleep(1);
}

static void flood(long n)
{
	char name[64];
	struct ring_hello hello = hello_of(1024, name);
	for (long i = 0; i < n; i++) {
		int connection = ring_client_connect(name);
		if (connection < 0)
			continue;
		ring_client_send(connection, &hello, 1 + (size_t)i % sizeof(hello), -1, 0);
		close(connection);
	}
}

static void fast(double seconds)
{
	struct ring_client client = honest();
	for (int64_t end_ns = ring_now_ns() + (int64_t)(seconds * 1e9); ring_now_ns() < end_ns;)
		for (int i = 0; i < 1000; i++) {
			ring_client_event(&client, RECORD_BEGIN, 0, 0);
			ring_client_event(&client, RECORD_END, 0, 1);
		}
}

// Waits for free space, so that each record is read.
static void put_range(struct ring_client *client, enum record_kind kind, uint64_t number)
{
	while (!ring_client_has_room(client, 2))
		usleep(200);
	ring_client_extra(client, kind, 0, (struct record_extra){.number = number});
}

/* The number n with n * 0x9e3779b97f4a7c15 = x * (2^32 + 1), of which `h ^ h >> 32` has no bit in the lower half: all these
 * numbers have one slot, in tables of any size. */
static uint64_t colliding(uint32_t x)
{
	uint64_t inverse = 1;
	for (int i = 0; i < 6; i++) // Newton: each step doubles the number of correct bits
		inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
	return ((uint64_t)x << 32 | x) * inverse;
}

static void collide(double seconds)
{
	enum { RANGES = 200000 };
	struct ring_client client = honest();
	int64_t end_ns = ring_now_ns() + (int64_t)(seconds * 1e9);
	for (uint32_t x = 1; x <= RANGES && ring_now_ns() < end_ns; x++)
		put_range(&client, RECORD_RANGE_BEGIN, colliding(x));
	for (uint32_t x = 1; ring_now_ns() < end_ns; x = x % RANGES + 1) {
		put_range(&client, RECORD_RANGE_END, colliding(x));
		put_range(&client, RECORD_RANGE_BEGIN, colliding(x));
	}
}

static void cross(double seconds)
{
	struct ring_client client = honest();
	int64_t end_ns = ring_now_ns() + (int64_t)(seconds * 1e9);
	for (int i = 0; i < SPAN_DEPTH_MAX; i++)
		ring_client_event(&client, RECORD_BEGIN, 0, 0);
	while (ring_now_ns() < end_ns) {
		while (!ring_client_has_room(&client, 2))
			usleep(200);
		ring_client_event(&client, RECORD_END, SPAN_DEPTH_MAX - 1, 1);
		ring_client_event(&client, RECORD_BEGIN, 0, 0);
	}
}

static void rings(int n, uint32_t n_records)
{
	for (int i = 0; i < n; i++) {
		struct ring_client client;
		if (!ring_client_open_sized(&client, 9, n_records))
			exit(3);
		const struct span_record record = {.kind = RECORD_PAD};
		for (uint32_t k = 0; k <= client.mask; k++)
			ring_client_put(&client, &record);
		ring_client_publish(&client);
	}
	sleep(3);
}

int main(int argc, char **argv)
{
	const char *act = argc > 1 ? argv[1] : "";
	const char *number = argc > 2 ? argv[2] : "1";
	if (strcmp(act, "ahead") == 0)
		move_head(INT64_C(1) << 60);
	else if (strcmp(act, "back") == 0)
		move_head(-3);
	else if (strcmp(act, "noise") == 0)
		noise(strtoull(number, NULL, 10));
	else if (strcmp(act, "forged") == 0)
		forged();
	else if (strcmp(act, "truncate") == 0)
		try_to_truncate();
	else if (strcmp(act, "silent") == 0)
		silent(atol(number));
	else if (strcmp(act, "flood") == 0)
		flood(atol(number));
	else if (strcmp(act, "fast") == 0)
		fast(atof(number));
	else if (strcmp(act, "collide") == 0)
		collide(atof(number));
	else if (strcmp(act, "cross") == 0)
		cross(atof(number));
	else if (strcmp(act, "rings") == 0)
		rings(atoi(number), argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
	else
		bring_odd(act);
	return 0;
}
