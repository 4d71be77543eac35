#include "span/writer/internal.h"

#include "span/writer/writer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Atomic int span_writer_state = SPAN_OFF;

enum { SOURCE_WORDS = (sizeof(struct span_source) + 7) / 8 };

/* Destination of the present session. Threads copy it word by word and then check the state again: session numbers are
 * never reused, so an equal number means that nothing changed. Readers need no lock. */
static struct {
	_Atomic uint64_t words[SOURCE_WORDS];
	_Atomic int sessions; // number of sessions begun
	atomic_flag changing;
	char path[PATH_MAX];
	uint8_t boot_id[16];
} places = {.changing = ATOMIC_FLAG_INIT};

static const struct span_source file_source = {.is_file = true};

bool span_source_get(int session, struct span_source *ret_source)
{
	uint64_t words[SOURCE_WORDS];
	for (size_t i = 0; i < SOURCE_WORDS; i++)
		words[i] = atomic_load_explicit(&places.words[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&span_writer_state, memory_order_relaxed) != session)
		return false;
	memcpy(ret_source, words, sizeof(*ret_source));
	return true;
}

// Call with the state off; NULL: it stays off.
static void publish(const struct span_source *source)
{
	uint64_t words[SOURCE_WORDS] = {0};
	if (source == NULL)
		return;
	memcpy(words, source, sizeof(*source));
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < SOURCE_WORDS; i++)
		atomic_store_explicit(&places.words[i], words[i], memory_order_relaxed);
	int number = atomic_fetch_add(&places.sessions, 1) + 1;
	atomic_store_explicit(&span_writer_state, number, memory_order_release);
}

/* Ends `session` (NULL: the present one) and begins the next one. -EAGAIN: another thread is changing it. */
static int change(const int *session, const struct span_source *source)
{
	struct quiet quiet;
	int r = -EAGAIN;
	quiet_begin(&quiet);
	if (!atomic_flag_test_and_set_explicit(&places.changing, memory_order_acquire)) {
		int expected = session != NULL ? *session : atomic_load(&span_writer_state);
		if (atomic_compare_exchange_strong(&span_writer_state, &expected, SPAN_OFF)) {
			publish(source);
			r = 0;
		}
		atomic_flag_clear_explicit(&places.changing, memory_order_release);
	}
	quiet_end(&quiet);
	return r;
}

void span_source_failed(int session)
{
	struct span_source source;
	if (span_source_get(session, &source))
		(void)change(&session, !source.is_file && places.path[0] != '\0' ? &file_source : NULL);
}

void span_source_forked(void)
{
	atomic_flag_clear(&places.changing);
}

const char *span_source_path(void)
{
	return places.path;
}

const uint8_t *span_source_boot_id(void)
{
	return places.boot_id;
}

// The program may change its working directory, so the path is made absolute.
static void set_path(const char *path)
{
	size_t length = 0;
	if (path[0] != '/') {
		if (getcwd(places.path, sizeof(places.path) - 1) == NULL || places.path[0] != '/') {
			places.path[0] = '\0';
			return;
		}
		length = strlen(places.path);
		places.path[length++] = '/';
	}
	size_t own = strlen(path) + 1;
	if (own > sizeof(places.path) - length)
		places.path[0] = '\0';
	else
		memcpy(places.path + length, path, own);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_boot_id(void)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	char text[40];
	ssize_t n = read(fd, text, sizeof(text));
	close(fd);
	size_t digits = 0;
	for (ssize_t i = 0; i < n && digits < 2 * sizeof(places.boot_id); i++) {
		int digit = hex_digit(text[i]);
		if (digit < 0)
			continue;
		uint8_t *byte = &places.boot_id[digits++ / 2];
		*byte = (uint8_t)(*byte << 4 | digit);
	}
}

void span_source_set_file(const char *path)
{
	read_boot_id();
	set_path(path);
}

int span_source_begin(const struct ring_address *ring)
{
	if (ring == NULL)
		return change(NULL, places.path[0] != '\0' ? &file_source : NULL);
	struct span_source source = {.is_file = false, .ring = *ring};
	return change(NULL, &source);
}
