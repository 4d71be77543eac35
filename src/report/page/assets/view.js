/* Charts and lanes as one: one cursor, one zoom, for mouse, touch and keys. */
const KEYS_TOLD = "Drag to zoom, Shift-drag or swipe sideways to pan, Ctrl-wheel to zoom, double click to see all. Keys: + − zoom, ← → pan, "
	+ "Shift ← → move the cursor, Home or Escape all. With the focus on lanes ← → go from span to span, ↑ ↓ from lane to lane.";

class View {
	constructor(box, model) {
		this.box = box;
		this.model = model;
		this.time = new TimeWindow(model.axis);
		box.tabIndex = 0;
		box.setAttribute("role", "group");
		box.setAttribute("aria-label", "Charts over time, one cursor and one zoom for all");
		box.setAttribute("aria-describedby", "view-help");
		this.makeTools();
		this.stack = element("div", "stack");
		this.cursor = element("div", "cursor");
		this.range = element("div", "range");
		this.cursor.hidden = this.range.hidden = true;
		box.append(this.stack);
		giveColours(model.charts);
		this.charts = model.charts.map((chart) => new ChartView(this.stack, chart, model, this.time));
		this.lanes = this.makeLanes();
		this.stack.append(this.cursor, this.range);
		this.measure();
		reserveLegends(this.charts);
		for (const chart of this.charts)
			chart.makeGraph();
		for (const lanes of this.lanes)
			lanes.resize();
		this.time.watch((shown) => this.update(shown));
		this.listen();
		onColours.push(() => this.update(true));
		new ResizeObserver(() => this.resize()).observe(this.stack);
		this.tell();
	}

	makeLanes() {
		const made = [], events = eventLanes(this.model);
		const add = (title, lanes, source, label) => {
			const view = new LanesView(this.section(title), lanes, source, this.time, label);
			new LaneKeys(view, title, (block) => this.chooseBlock(block === this.chosen ? null : block));
			made.push(view);
		};
		if (events.length > 0)
			add("Throttling, gaps, events", events, eventSource(), `${events.length} rows of events over time`);
		if (this.model.lanes.length > 0)
			add("Spans", this.model.lanes, spanSource(this.model),
				`${this.model.spans} spans over time, by process and thread; the table of code blocks has their figures`);
		return made;
	}

	section(title) {
		const section = element("section", "chart chart-lanes");
		const head = element("div", "chart-head");
		head.append(element("h3", "", title));
		section.append(head);
		this.stack.append(section);
		return section;
	}

	makeTools() {
		const tools = element("div", "view-tools");
		const add = (text, label, call) => {
			const button = element("button", "tool", text);
			button.type = "button";
			button.setAttribute("aria-label", label);
			button.title = label;
			button.addEventListener("click", call);
			tools.append(button);
			return button;
		};
		add("+", "Zoom in", () => this.time.zoom(0.5));
		add("−", "Zoom out", () => this.time.zoom(2));
		this.left = add("←", "Earlier", () => this.time.pan(-0.25));
		this.right = add("→", "Later", () => this.time.pan(0.25));
		this.all = add("All", "Show all of the time", () => this.time.reset());
		this.shown = element("span", "shown");
		this.shown.setAttribute("role", "status");
		this.readout = element("span", "readout");
		const help = add("?", "Help: mouse and keys", () => {
			this.help.hidden = !this.help.hidden;
			help.setAttribute("aria-expanded", String(!this.help.hidden));
		});
		help.setAttribute("aria-expanded", "false");
		tools.append(this.shown, this.readout);
		this.help = element("p", "faint small", KEYS_TOLD);
		this.help.id = "view-help";
		this.help.hidden = true;
		this.box.append(tools, this.help);
	}

	get area() {
		return { x: AXIS_WIDTH, w: this.width - AXIS_WIDTH - 8 };
	}

	x(seconds) {
		const [from, to] = this.time.shown;
		return this.area.x + (seconds - from) / (to - from) * this.area.w;
	}

	seconds(clientX) {
		const [from, to] = this.time.shown;
		const x = clientX - this.stack.getBoundingClientRect().left - this.area.x;
		return from + x / this.area.w * (to - from);
	}

	/* True: its width has changed. */
	measure() {
		const before = this.width;
		this.width = this.stack.clientWidth;
		this.time.width = Math.max(50, this.area.w);
		return this.width !== before && this.width > 0;
	}

	resize() {
		if (!this.measure())
			return;
		reserveLegends(this.charts);
		for (const chart of this.charts)
			chart.resize();
		for (const lanes of this.lanes)
			lanes.resize();
		this.placeCursor();
	}

	update(shown) {
		if (shown) {
			for (const chart of this.charts)
				chart.update();
			for (const lanes of this.lanes)
				lanes.draw();
		}
		this.box.classList.toggle("reading", this.time.cursor !== null);
		for (const chart of this.charts)
			chart.read(this.time.cursor);
		this.placeCursor();
		this.tell();
	}

	placeCursor() {
		const at = this.time.cursor, [from, to] = this.time.shown;
		this.cursor.hidden = at === null || at < from || at > to;
		if (!this.cursor.hidden)
			this.cursor.style.transform = `translateX(${Math.round(this.x(at))}px)`;
	}

	/* The visible part, and the position of the cursor. */
	tell() {
		const [from, to] = this.time.shown, at = this.time.cursor, step = Math.min(1, niceStep((to - from) / 1000));
		const wall = at === null ? "" : wallText(this.model.axis, at);
		this.readout.textContent = at === null ? "" : clockText(at, step) + (wall ? ` · ${wall}` : "");
		this.shown.textContent = this.time.isWhole
			? duration(this.time.all[1])
			: `${clockText(from, step)} – ${clockText(to, step)} (${duration(to - from)})`;
		this.left.disabled = from <= 0;
		this.right.disabled = to >= this.time.all[1];
		this.all.disabled = this.time.isWhole;
	}

	listen() {
		const stack = this.stack;
		stack.addEventListener("pointermove", (event) => this.move(event));
		stack.addEventListener("pointerleave", () => this.drag || this.time.point(null));
		stack.addEventListener("pointerdown", (event) => this.press(event));
		stack.addEventListener("pointerup", (event) => this.release(event));
		stack.addEventListener("pointercancel", () => this.forget());
		// The stack receives the clicks of a captured pointer: the position of the press decides.
		stack.addEventListener("dblclick", () => this.pressed && this.time.reset());
		stack.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
		this.box.addEventListener("keydown", (event) => this.key(event));
	}

	inPlot(event) {
		return event.target.closest(".plot, .lanes") !== null && event.clientX - this.stack.getBoundingClientRect().left >= this.area.x;
	}

	press(event) {
		this.pressed = this.inPlot(event);
		if (event.button !== 0 || !this.pressed || event.pointerType === "touch")
			return;
		this.drag = { x: event.clientX, from: this.seconds(event.clientX), shown: this.time.shown, pans: event.shiftKey };
		this.stack.setPointerCapture(event.pointerId);
		hideTip();
	}

	move(event) {
		if (this.drag && this.drag.pans) {
			const [from, to] = this.drag.shown, by = (this.drag.x - event.clientX) / this.area.w * (to - from);
			this.time.show(from + by, to + by);
			return;
		}
		const at = this.seconds(event.clientX);
		if (this.drag)
			this.markRange(this.drag.from, at);
		this.time.point(this.drag || this.inPlot(event) ? at : null);
	}

	markRange(a, b) {
		const left = Math.max(this.area.x, this.x(Math.min(a, b))), right = Math.min(this.area.x + this.area.w, this.x(Math.max(a, b)));
		this.range.hidden = right - left < 3;
		this.range.style.left = left + "px";
		this.range.style.width = Math.max(0, right - left) + "px";
	}

	release(event) {
		const drag = this.drag;
		this.forget();
		if (!drag || drag.pans)
			return;
		const at = this.seconds(event.clientX);
		if (Math.abs(event.clientX - drag.x) >= 4)
			this.time.show(Math.min(drag.from, at), Math.max(drag.from, at));
		else
			this.pick(event);
	}

	forget() {
		this.drag = null;
		this.range.hidden = true;
	}

	/* A click on a span highlights its block, here and in the table; a second one, or one outside spans, removes
	 * that. */
	pick(event) {
		for (const lanes of this.lanes) {
			const box = lanes.canvas.getBoundingClientRect();
			if (!lanes.rows.some((row) => row.lane && row.lane.block) || event.clientY < box.top || event.clientY > box.bottom)
				continue;
			const found = lanes.find(event), block = found ? found.lane.block[found.item] : -1;
			this.chooseBlock(block >= 0 && block !== lanes.chosen ? block : null);
		}
	}

	chooseBlock(block) {
		this.chosen = block;
		for (const lanes of this.lanes)
			if (lanes.rows.some((row) => row.lane && row.lane.block))
				lanes.choose(block);
		document.querySelectorAll("tr[data-block]").forEach((row) => {
			const isChosen = row.classList.toggle("chosen", block !== null && Number(row.dataset.block) === block);
			row.querySelector(".block-choice").setAttribute("aria-pressed", String(isChosen));
		});
	}

	wheel(event) {
		const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
		if (!this.inPlot(event) || !(event.ctrlKey || event.metaKey || sideways))
			return;
		event.preventDefault();
		if (event.ctrlKey || event.metaKey)
			this.time.zoom(1.0018 ** Math.max(-400, Math.min(400, event.deltaY)), this.seconds(event.clientX));
		else
			this.time.pan(event.deltaX / this.area.w);
	}

	step(direction) {
		const [from, to] = this.time.shown;
		this.time.point((this.time.cursor ?? (from + to) / 2) + direction * (to - from) / 200);
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		const right = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		const calls = {
			"+": () => this.time.zoom(0.5),
			"=": () => this.time.zoom(0.5),
			"-": () => this.time.zoom(2),
			"_": () => this.time.zoom(2),
			ArrowLeft: () => (event.shiftKey ? this.step(right) : this.time.pan(right / 8)),
			ArrowRight: () => (event.shiftKey ? this.step(right) : this.time.pan(right / 8)),
			Home: () => this.time.reset(),
			Escape: () => {
				this.forget();
				this.time.reset();
				this.chooseBlock(null);
			},
		};
		if (!calls[event.key])
			return;
		event.preventDefault();
		calls[event.key]();
	}
}
