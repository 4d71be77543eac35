#include "spank/spank.h"

#include "base/util.h"
#include "job/job.h"

static const char fixed_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// A service in ~/.pg_service.conf can name a key in a loadable module, and a URL can name the service.
static const char no_services[] = "PGSERVICEFILE=/dev/null";

// A name that ends in * is a prefix.
static const char *const of_the_job[] = {
	"SLURM_*",
	"CUDA_VISIBLE_DEVICES",
	"CUDA_DEVICE_ORDER",
	"HIP_VISIBLE_DEVICES",
	"ROCR_VISIBLE_DEVICES",
	"HOME",
	"USER",
	"LOGNAME",
	"TMPDIR",
	"XDG_STATE_HOME",
	"TZ",
	// libpq's connection parameters, except those that name a key or a service with one: a key can be in a loadable
	// module.
	"PGHOST",
	"PGHOSTADDR",
	"PGPORT",
	"PGDATABASE",
	"PGUSER",
	"PGPASSWORD",
	"PGPASSFILE",
	"PGSSLMODE",
	"PGSSLROOTCERT",
	"PGCONNECT_TIMEOUT",
};
// A locale name with a slash is a path to the user's files.
static const char *const locales[] = {"LANG", "LC_*"};
// The site decides which paths replace the machine's.
static const char *const of_the_site[] = {
	"WATTLE_SYSFS",
	"WATTLE_PROCFS",
	"WATTLE_HELPER",
	"WATTLE_STATE",
};

static bool is_in(const char *const *names, size_t n, const char *text)
{
	size_t length = strcspn(text, "=");
	for (size_t i = 0; i < n; i++) {
		size_t wanted = strcspn(names[i], "*");
		bool fits = names[i][wanted] == '*' ? length >= wanted : length == wanted;
		if (text[length] == '=' && fits && strncmp(text, names[i], wanted) == 0)
			return true;
	}
	return false;
}

struct list {
	char **job;
	char **texts;
	size_t n;
};

static void add(struct list *list, char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->texts[i] == text)
			return;
	list->texts[list->n++] = text;
}

// Adds each variable that job_env_find reads, so that only job/launcher_env.c has to know the launchers.
static const char *query_and_add(const char *name, void *data)
{
	struct list *list = data;
	char **at = environment_find(name, list->job);
	if (*at == NULL)
		return NULL;
	add(list, *at);
	return *at + strlen(name) + 1;
}

static size_t count(char **texts)
{
	size_t n = 0;
	while (texts[n] != NULL)
		n++;
	return n;
}

char **recorder_environment(char **job, char **site)
{
	struct job_env job_env;
	struct list list = {.job = job};
	list.texts = calloc_array(count(job) + count(site) + 3 + VISIBLE_CAPACITY, sizeof(*list.texts));
	if (list.texts == NULL)
		return NULL;
	add(&list, (char *)(uintptr_t)fixed_path);
	add(&list, (char *)(uintptr_t)no_services);
	job_env_find(query_and_add, &list, &job_env);
	for (char **at = job; *at != NULL; at++) {
		bool is_locale = is_in(locales, ARRAY_SIZE(locales), *at) && strchr(*at, '/') == NULL;
		if (is_locale || is_in(of_the_job, ARRAY_SIZE(of_the_job), *at))
			add(&list, *at);
	}
	for (char **at = site; *at != NULL; at++)
		if (is_in(of_the_site, ARRAY_SIZE(of_the_site), *at))
			add(&list, *at);
	return list.texts;
}
