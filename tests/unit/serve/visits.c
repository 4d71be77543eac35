#include "serve/visits.h"

#include "base/util.h"

#include "rows.h"

#include <sys/socket.h>
#include <unistd.h>

// A connection whose other end shows whether ours was hung up.
static int connection(int *ret_other)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	*ret_other = fds[1];
	return fds[0];
}

static bool is_hung_up(int other)
{
	char c;
	return read(other, &c, 1) == 0;
}

static const struct row {
	const char *teaches;
	bool is_answered; // after 20 s
	int64_t silent_s; // then
	bool is_hung_up;
} rows[] = {
	{"who has just come may stay", false, 0, false},
	{"who has said nothing for too long goes", false, 11, true},
	{"whoever asked has as long again for the answer", true, 29, false},
	{"whoever does not read the answer goes", true, 31, true},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct visits visits;
	int other, fd = connection(&other);
	visits_init(&visits);
	struct visit *visit = visits_begin(&visits, fd, 0);
	int64_t t_ns = 20 * NS_PER_S;
	if (row->is_answered)
		visit_is_answered(visit, true, t_ns);
	visits_sweep(&visits, t_ns + row->silent_s * NS_PER_S);
	assert_int_equal(is_hung_up(other), row->is_hung_up);
	visits_end(&visits, visit);
	assert_int_equal(visits.n, 0);
	close(fd);
	close(other);
}

static void crowd(void **state)
{
	struct visits visits;
	int others[VISITS_MAX], fds[VISITS_MAX];
	visits_init(&visits);
	for (int i = 0; i < VISITS_MAX; i++) {
		fds[i] = connection(&others[i]);
		struct visit *visit = visits_begin(&visits, fds[i], i * NS_PER_S / 10);
		assert_non_null(visit);
		if (i == 0)
			visit_is_answered(visit, true, 0);
	}
	assert_null(visits_begin(&visits, fds[0], 10 * NS_PER_S));
	// One goes for each that came when it was no longer roomy, and one for who found no place.
	for (int i = 0; i < VISITS_MAX; i++) {
		assert_int_equal(is_hung_up(others[i]), i >= 1 && i <= VISITS_MAX - VISITS_ROOMY + 1);
		close(fds[i]);
		close(others[i]);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "in a crowd those go who have been silent for longest, not who is being answered", crowd);
	return rows_run(&tests, "visits");
}
