/* The page of a job: power of its nodes, and a lane for each rank. */
whenReady(() => {
	const block = document.getElementById("charts"), box = document.getElementById("view");
	if (!block || !box)
		return;
	const model = readModel(JSON.parse(block.textContent));
	for (const chart of model.charts)
		for (const series of chart.series)
			series.text = seenName(series.label);
	for (const lane of model.lanes)
		lane.heading = seenName(lane.heading);
	new View(box, model);
});
