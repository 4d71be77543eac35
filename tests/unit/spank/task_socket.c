#include "lib/tracker_wire.h"

#include "base/clock.h"
#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64 };

static const struct row {
	const char *teaches;
	uint64_t said, sent; // bytes
	int result;
	size_t heard;
} rows[] = {
	{"text of the maximum length: received", MOST, MOST, 0, MOST},
	{"longer text: read and dropped", 10000, 10000, 0, 0},
	{"announced text that does not arrive: times out", 1 << 29, 100, -ETIMEDOUT, 0},
	{"invalid length: another protocol", 1ULL << 60, 0, -EPROTO, 0},
};

static void check(void **state)
{
	const struct row *row = *state;
	static const char bytes[10000];
	const struct tracker_message message = tracker_message("error", 0, row->said),
				     next = tracker_message("ready", 0, 0);
	struct tracker_reply word;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(send(pair[0], &message, sizeof(message), 0), sizeof(message));
	assert_int_equal(send(pair[0], bytes, row->sent, 0), row->sent);
	int r = tracker_receive(pair[1], clock_now_ns() + 20 * NS_PER_MS, MOST, &word);
	assert_int_equal(r, row->result);
	if (r == 0) {
		assert_int_equal(word.message.size, row->heard);
		free(word.text);
		assert_int_equal(send(pair[0], &next, sizeof(next), 0), sizeof(next));
		assert_int_equal(tracker_receive(pair[1], clock_now_ns() + NS_PER_S, MOST, &word), 0);
		assert_true(tracker_message_is(&word.message, "ready"));
		free(word.text);
	}
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "line");
}
