/* A NULL-terminated list of NAME=VALUE. */
#pragma once

// Where NAME stands, or the end of the list.
char **environment_find(const char *name, char **environment);
// A job_variable of it: its value, or NULL. `environment` may be NULL.
const char *environment_variable(const char *name, void *environment);
