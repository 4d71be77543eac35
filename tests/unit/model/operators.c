/* The operator table is searched by bisection, so its rows must be sorted. */
#include "model/internal.h"

#include "rows.h"

static void sorted(void **state)
{
	size_t n;
	const struct operator_row *all = operator_list(&n);
	for (size_t i = 1; i < n; i++) {
		int by_domain = strcmp(all[i - 1].domain, all[i].domain);
		if (by_domain > 0 || (by_domain == 0 && strcmp(all[i - 1].name, all[i].name) >= 0))
			fail_msg("%s::%s stands behind %s::%s", all[i].domain, all[i].name, all[i - 1].domain,
				all[i - 1].name);
	}
}

static void found(void **state)
{
	size_t n;
	const struct operator_row *all = operator_list(&n);
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(operator_find(all[i].domain, all[i].name), &all[i]);
	assert_null(operator_find("", "Con"));
	assert_null(operator_find("com.example", "Conv"));
}

static void counted_have_factors(void **state)
{
	size_t n;
	const struct operator_row *all = operator_list(&n);
	for (size_t i = 0; i < n; i++)
		if ((all[i].factors != 0) && all[i].count == NULL)
			fail_msg("%s multiplies and does not count", all[i].name);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "rows are sorted by domain and name, each once", sorted);
	ROWS_ADD_ONE(&tests, "every operator is found, unknown names are not", found);
	ROWS_ADD_ONE(&tests, "operators with factors have a count", counted_have_factors);
	return rows_run(&tests, "the table of operators");
}
