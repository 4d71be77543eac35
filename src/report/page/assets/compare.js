/* The page of several runs: charts as on the page of one, with a series for each run. */
whenReady(() => {
	const block = document.getElementById("charts"), box = document.getElementById("view");
	if (!block || !box)
		return;
	const model = readModel(JSON.parse(block.textContent));
	for (const chart of model.charts)
		for (const series of chart.series) {
			series.label = series.name;
			// "run-N" is its place in the tables: there it has the same colour.
			series.colour = "series-" + Number(series.device.slice(4)) % SERIES_COLOURS;
		}
	new View(box, model);
});
