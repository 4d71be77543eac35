/* The process that reads the policy again (policy.h). */
#include "helper/policy.h"

#include "base/descriptors.h"
#include "helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int policy_open(const char *path, struct policy *ret_policy, struct wattle_error *reterr)
{
	if (path != NULL)
		return policy_load(path, ret_policy, reterr);
	policy_default(ret_policy);
	return 0;
}

// Signals for wattled are blocked here, so a shutdown of the whole service ends this process last, by the end of its socket.
static _Noreturn void answer_requests(const char *path, int fd)
{
	enum { FIRST_FREE = STDERR_FILENO + 1 };
	struct policy_answer answer;
	char request;
	if (fd != FIRST_FREE)
		dup2(fd, FIRST_FREE);
	close_from(
		FIRST_FREE + 1); // sockets that systemd passed, and the pipe that shows the guard that the server ended
	sandbox_drop_capabilities();
	while (recv(FIRST_FREE, &request, sizeof(request), 0) > 0) {
		memset(&answer, 0, sizeof(answer));
		answer.code = policy_open(path, &answer.policy, &answer.error);
		if (send(FIRST_FREE, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

int policy_reader_start(const char *path, int *ret_fd, struct wattle_error *reterr)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(reterr, -errno, "socketpair: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		answer_requests(path, ends[1]);
	int error = errno;
	close(ends[1]);
	if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		close(ends[0]);
		return error_set(reterr, -error, "fork: %s", strerror(error));
	}
	*ret_fd = ends[0];
	return 0;
}
