#include "spank/spank.h"

#include <string.h>

char **environment_find(const char *name, char **environment)
{
	size_t length = strlen(name);
	while (*environment != NULL && (strncmp(*environment, name, length) != 0 || (*environment)[length] != '='))
		environment++;
	return environment;
}

const char *environment_variable(const char *name, void *environment)
{
	char **at = environment != NULL ? environment_find(name, environment) : NULL;
	return at != NULL && *at != NULL ? *at + strlen(name) + 1 : NULL;
}
