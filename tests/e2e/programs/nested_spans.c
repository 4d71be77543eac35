/* outer { inner, inner } in two threads that overlap, and in a child: 3 calls of outer, 6 of inner. */
#include <wattle.h>

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void wait_ms(long ms)
{
	const struct timespec time = {0, ms * 1000000};
	nanosleep(&time, NULL);
}

static void *nest(void *data)
{
	wattle_span_begin("outer");
	for (int i = 0; i < 2; i++) {
		wattle_span_begin("inner");
		wait_ms(5);
		wattle_span_end();
		wait_ms(2);
	}
	wattle_span_end();
	return data;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, nest, NULL);
	wait_ms(3);
	nest(NULL);
	pthread_join(thread, NULL);
	pid_t child = fork();
	if (child == 0) {
		nest(NULL);
		_exit(0);
	}
	int status;
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
