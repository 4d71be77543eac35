#include "lib/cap.h"

#include "base/util.h"
#include "lib/tracker.h"
#include "sensor/gpu_roster.h"
#include "sensor/sensor.h"

#include <errno.h>
#include <stdio.h>

struct choice {
	struct cap_session *session;
	enum cap_what what;
	struct cap_device **devices;
	size_t n;
	struct wattle_error *reterr;
};

static void add(struct choice *choice, struct cap_device *device)
{
	for (size_t i = 0; i < choice->n; i++)
		if (choice->devices[i] == device)
			return;
	choice->devices[choice->n++] = device;
}

static int add_named(struct choice *choice, const char *name)
{
	struct cap_device *device;
	int r = cap_devices_find(&choice->session->devices, name, choice->what, &device, choice->reterr);
	if (r == 0)
		add(choice, device);
	return r;
}

// The sensors know which are visible; those that can't be limited are named, not left out.
static int add_visible(struct choice *choice)
{
	struct sensor_options options = {0};
	struct sensor_set sensors;
	gpu_environment(&options);
	int r = sensor_set_open(&sensors, &choice->session->env, &options, choice->reterr);
	if (r < 0)
		return r;
	for (size_t s = 0; r == 0 && s < sensors.n_slots; s++)
		for (size_t i = 0; r == 0 && i < sensors.slots[s].n_domains; i++) {
			const struct domain *domain = &sensors.slots[s].domains[i];
			if (domain->kind == DOMAIN_GPU && !domain->unwanted && domain->index >= 0)
				r = add_named(choice, domain->name);
		}
	sensor_set_close(&sensors);
	if (r == 0 && choice->n == 0)
		r = error_set(choice->reterr, -ENODEV, "gpus: no GPU is visible to this program");
	return r;
}

int cap_choose(struct cap_session *session, const char *text, enum cap_what what, struct cap_device **ret_devices,
	size_t *ret_n, struct wattle_error *reterr)
{
	struct choice choice = {session, what, ret_devices, 0, reterr};
	if (text == NULL || text[0] == '\0')
		return error_set(reterr, -EINVAL, "no device is named; valid are gpu-0, package-0, a UUID, gpus");
	for (const char *at = text; at != NULL; at = at[0] == ',' ? at + 1 : NULL) {
		char name[CAP_ID_SIZE];
		size_t length = strcspn(at, ",");
		int n = snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name)), at);
		if (n <= 0 || (size_t)n >= sizeof(name))
			return error_set(reterr, -EINVAL,
				"%s: an entry is empty or too long; give names with one comma between", text);
		int r = strcmp(name, "gpus") == 0 ? add_visible(&choice) : add_named(&choice, name);
		if (r < 0)
			return r;
		at += length;
	}
	*ret_n = choice.n;
	return 0;
}

static int names_of(struct cap_session *session, const char *text, enum cap_what what, char *ret_names, size_t size,
	struct wattle_error *reterr)
{
	struct cap_device **devices = calloc_array(session->devices.n, sizeof(struct cap_device *));
	size_t n = 0, used = 0;
	int r = devices != NULL ? cap_choose(session, text, what, devices, &n, reterr) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++) {
		used += (size_t)snprintf(ret_names + used, size - used, "%s%s", i > 0 ? "," : "", devices[i]->name);
		if (used >= size)
			r = error_set(reterr, -EINVAL, "%s: too many devices", text);
	}
	free(devices);
	return r;
}

int cap_choose_names(const char *text, enum cap_what what, char *ret_names, size_t size, struct wattle_error *reterr)
{
	if (is_disabled_by_environment())
		return text_copy(ret_names, size, text) ? 0
							: error_set(reterr, -EINVAL, "the list of devices is too long");
	struct cap_session *session;
	int r = cap_session_enter(&session, reterr);
	if (r < 0)
		return r;
	r = names_of(session, text, what, ret_names, size, reterr);
	cap_session_leave();
	return r;
}
