/* A program whose functions use known CPU time: each act prints, for each of its functions, "NAME SECONDS" of CPU time.
 *
 * usage: profiled shares|recursive|threads|children|short|generated SECONDS */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline))
#define END_OF_FUNCTION __asm__ volatile("" ::: "memory") // the call before it is not a tail call

static volatile uint64_t sink;

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

FUNCTION static void spin(double seconds)
{
	for (double end = cpu_s() + seconds; cpu_s() < end;)
		for (int i = 0; i < 20000; i++)
			sink += (uint64_t)i;
	END_OF_FUNCTION;
}

#define SPINNING(name)                                                                                                 \
	FUNCTION static double name(double seconds)                                                                    \
	{                                                                                                              \
		double begin = cpu_s();                                                                                \
		spin(seconds);                                                                                         \
		END_OF_FUNCTION;                                                                                       \
		return cpu_s() - begin;                                                                                \
	}
SPINNING(one)
SPINNING(nine)
SPINNING(thirty)
SPINNING(sixty)
SPINNING(left)
SPINNING(right)
SPINNING(in_child)
SPINNING(in_parent)

FUNCTION static void outer(double seconds, double used_s[4])
{
	used_s[0] += one(seconds * 0.01);
	used_s[1] += nine(seconds * 0.09);
	used_s[2] += thirty(seconds * 0.30);
	END_OF_FUNCTION;
}

static void shares(double seconds)
{
	enum { ROUNDS = 10 };
	double used_s[4] = {0};
	for (int i = 0; i < ROUNDS; i++) {
		outer(seconds / ROUNDS, used_s);
		used_s[3] += sixty(seconds / ROUNDS * 0.6);
	}
	printf("one %.9f\nnine %.9f\nthirty %.9f\nsixty %.9f\nouter %.9f\n", used_s[0], used_s[1], used_s[2], used_s[3],
		used_s[0] + used_s[1] + used_s[2]);
}

FUNCTION static void recurse(int depth, double seconds)
{
	if (depth > 0)
		recurse(depth - 1, seconds);
	else
		spin(seconds);
	END_OF_FUNCTION;
}

static void recursive(double seconds)
{
	double begin = cpu_s();
	recurse(60, seconds);
	printf("recurse %.9f\n", cpu_s() - begin);
}

struct part {
	double (*function)(double seconds);
	double seconds;
};

static void *run_part(void *data)
{
	struct part *part = data;
	part->seconds = part->function(part->seconds);
	return NULL;
}

static void threads(double seconds)
{
	struct part parts[] = {{left, seconds * 0.25}, {right, seconds * 0.75}};
	pthread_t ids[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&ids[i], NULL, run_part, &parts[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(ids[i], NULL);
	printf("left %.9f\nright %.9f\n", parts[0].seconds, parts[1].seconds);
}

// Half of the time in children of length_s each, one after the other.
static void children(double seconds, double length_s)
{
	int n = (int)(seconds / 2 / length_s + 0.5);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			in_child(length_s);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	printf("in_child %.9f\nin_parent %.9f\n", n * length_s, in_parent(seconds / 2));
}

#ifdef __x86_64__
static const unsigned char count_down[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
#else
static const unsigned char count_down[1];
#endif

/* Runs generated code, and describes it in a perf map between lines that no map should have. */
static void generated(double seconds)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*function)(uint64_t) = NULL;
	char path[64];
	if (code == MAP_FAILED || sizeof(count_down) == 1)
		exit(2);
	memcpy(code, count_down, sizeof(count_down));
	memcpy(&function, &code, sizeof(function));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(path, "w");
	fprintf(map, "no map\n%lx\n%lx fffffffffffffffff overflow\nffffffffffffffff ffff wraps\n-1 10 negative\n",
		(long)code, (long)code);
	for (int i = 0; i < 100000; i++)
		fputc('a', map); // a line without an end so far
	fprintf(map, "\n%lx %zx count;down \x1b[31m\n", (long)code, sizeof(count_down));
	fclose(map);
	double begin = cpu_s();
	while (cpu_s() - begin < seconds)
		function(1000000);
	printf("generated %.9f\n%s\n", cpu_s() - begin, path);
}

int main(int argc, char **argv)
{
	const char *act = argc > 2 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[2]) : 0;
	if (strcmp(act, "shares") == 0)
		shares(seconds);
	else if (strcmp(act, "recursive") == 0)
		recursive(seconds);
	else if (strcmp(act, "threads") == 0)
		threads(seconds);
	else if (strcmp(act, "children") == 0)
		children(seconds, 0.1);
	else if (strcmp(act, "short") == 0)
		children(seconds, 0.004);
	else if (strcmp(act, "generated") == 0)
		generated(seconds);
	else
		return 2;
	return 0;
}
