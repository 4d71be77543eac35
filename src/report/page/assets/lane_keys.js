/* Keyboard control of lanes: the arrows move from item to item and from lane to lane. The tooltip's text is
 * announced to screen readers. */
class LaneKeys {
	/* `choose` gets the block on which Enter was pressed. */
	constructor(view, title, choose) {
		this.view = view;
		this.choose = choose;
		this.lanes = view.rows.filter((row) => row.lane && row.lane.n > 0);
		this.announcement = element("div", "aside");
		this.announcement.setAttribute("role", "status");
		view.box.after(this.announcement);
		view.box.tabIndex = 0;
		view.box.setAttribute("role", "group");
		view.box.setAttribute("aria-label", `${title}. Left and right go from one to the next, `
			+ "up and down from lane to lane, Enter highlights a block.");
		view.box.addEventListener("keydown", (event) => this.key(event));
		view.box.addEventListener("blur", () => this.leave());
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || this.lanes.length === 0)
			return;
		const at = this.view.marked;
		const calls = {
			ArrowRight: () => this.along(1),
			ArrowLeft: () => this.along(-1),
			ArrowDown: () => this.across(1),
			ArrowUp: () => this.across(-1),
		};
		if (at) { // otherwise the charts handle these keys
			calls.Home = () => this.go(at.row, 0);
			calls.End = () => this.go(at.row, at.row.lane.n - 1);
			calls.Escape = () => this.leave();
			if (at.row.lane.block && at.row.lane.block[at.item] >= 0)
				calls.Enter = calls[" "] = () => this.choose(at.row.lane.block[at.item]);
		}
		if (!calls[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		calls[event.key]();
	}

	/* The first step goes to the first visible item. */
	along(direction) {
		const at = this.view.marked;
		if (!at)
			this.go(this.lanes[0], this.near(this.lanes[0].lane, this.view.time.shown[0]));
		else
			this.go(at.row, Math.max(0, Math.min(at.row.lane.n - 1, at.item + direction)));
	}

	across(direction) {
		const at = this.view.marked;
		if (!at)
			return this.along(0);
		const number = this.lanes.indexOf(at.row) + direction;
		const row = this.lanes[Math.max(0, Math.min(this.lanes.length - 1, number))];
		return row !== at.row && this.go(row, this.near(row.lane, at.row.lane.from[at.item]));
	}

	/* The item of a lane at that time, or the next one. */
	near(lane, seconds) {
		const i = lastNotAbove(lane.from, seconds);
		return i < 0 || lane.to[i] < seconds && i + 1 < lane.n ? i + 1 : i;
	}

	go(row, item) {
		const view = this.view, from = row.lane.from[item], to = row.lane.to[item];
		view.marked = { row, item };
		const lowest = row.y + row.height - view.shownHeight; // to see it at the bottom
		view.box.scrollTop = Math.min(row.y, Math.max(view.box.scrollTop, lowest));
		const [left, right] = view.time.shown, length = right - left;
		if (from >= right || to <= left && from < left)
			view.time.show(from - length / 2, from + length / 2);
		view.time.point(Math.max(from, view.time.shown[0]));
		view.draw();
		this.tell(row, item);
	}

	tell(row, item) {
		const view = this.view, { title, lines } = view.source.tip(row.lane, item);
		const box = view.canvas.getBoundingClientRect();
		const x = Math.max(view.area.x, Math.min(view.area.x + view.area.w, view.x(row.lane.from[item])));
		showTip(box.left + x, box.top + row.y + row.height - view.box.scrollTop - 14, title, lines);
		this.announcement.textContent = [seenName(title), ...lines].join(", ");
	}

	leave() {
		if (!this.view.marked)
			return;
		this.view.marked = null;
		this.announcement.textContent = "";
		hideTip();
		this.view.time.point(null);
		this.view.draw();
	}
}
