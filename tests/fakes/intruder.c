/* A hostile library: preloaded, or named as that of a driver.
 *
 * In `wattle` it writes its pid to SELF.loaded and starts a process that outlives it.
 * In `wattled` it represents injected code: on SIGUSR2 it makes the attempts listed in SELF.wanted ("w PATH": open for writing, "r PATH":
 * for reading, "c PATH": connect to a stream socket) and appends "w PATH ERRNO" for each to SELF.done. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char self[500];
static char wanted[4096];
static int done_fd;

static int try_to_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
}

static int attempt(const char *line)
{
	if (line[0] == 'c')
		return try_to_connect(line + 2);
	int fd = open(line + 2, line[0] == 'w' ? O_WRONLY : O_RDONLY);
	int error = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return error;
}

static void on_signal(int number)
{
	char copy[sizeof(wanted)], *rest = copy, answer[700];
	memcpy(copy, wanted, sizeof(copy));
	for (char *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0';) {
		int length = snprintf(answer, sizeof(answer), "%s %d\n", line, attempt(line));
		(void)!write(done_fd, answer, (size_t)length);
	}
	(void)!write(done_fd, ".\n", 2);
}

static void wait_in_wattled(void)
{
	char path[600];
	snprintf(path, sizeof(path), "%s.wanted", self);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return;
	wanted[fread(wanted, 1, sizeof(wanted) - 1, file)] = '\0';
	fclose(file);
	snprintf(path, sizeof(path), "%s.done", self);
	done_fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	signal(SIGUSR2, on_signal);
}

static void intrude_into_wattle(void)
{
	char path[600];
	snprintf(path, sizeof(path), "%s.loaded", self);
	FILE *file = fopen(path, "ae");
	if (file == NULL)
		return;
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			execlp("sleep", "sleep", "4711", NULL);
		_exit(0);
	}
}

__attribute__((constructor)) static void intrude(void)
{
	Dl_info info;
	if (dladdr((void *)(__UINTPTR_TYPE__)intrude, &info) == 0)
		return;
	snprintf(self, sizeof(self), "%s", info.dli_fname);
	if (strcmp(program_invocation_short_name, "wattled") == 0)
		wait_in_wattled();
	if (strcmp(program_invocation_short_name, "wattle") == 0)
		intrude_into_wattle();
}
