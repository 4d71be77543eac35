/* The interactive flame graph: full width, normal letter size; a click on a block shows its contents. Its boxes are
 * those of the static picture. */
const FLAME_LETTER = 6.3, FLAME_LEAST = 30; // pixels: of a letter on average; of the narrowest box with text

class Flame {
	constructor(svg) {
		this.svg = svg;
		[, , this.width, this.height] = svg.getAttribute("viewBox").split(" ").map(Number);
		this.boxes = Array.from(svg.querySelectorAll("g"), (g) => this.read(g));
		this.whole = this.boxes[0];
		this.shown = this.whole;
		svg.setAttribute("role", "group");
		svg.parentElement.classList.add("flame");
		svg.parentElement.nextElementSibling.append(" Click a bar or press Enter to zoom into it; press Escape to show all.");
		this.fit();
		new ResizeObserver(() => this.fit()).observe(svg.parentElement);
		addEventListener("beforeprint", () => this.place(this.whole, this.width));
		addEventListener("afterprint", () => this.fit());
	}

	read(g) {
		const rect = g.querySelector("rect"), title = g.querySelector("title"), label = title.textContent, colon = label.lastIndexOf(": ");
		const number = (name) => Number(rect.getAttribute(name));
		const text = g.querySelector("text") || document.createElementNS(this.svg.namespaceURI, "text");
		const box = { g, rect, text, name: label.slice(0, colon), figures: label.slice(colon + 2), x: number("x"), w: number("width") };
		box.letters = Array.from(box.name); // whole characters
		if (!text.parentNode) {
			text.setAttribute("class", "c-ink");
			text.setAttribute("y", number("y") + 13);
			text.setAttribute("font-size", 11);
			g.append(text);
		}
		title.remove(); // replaced by a tooltip that appears immediately
		g.setAttribute("role", "button");
		g.setAttribute("aria-label", label);
		g.addEventListener("click", () => this.choose(box));
		g.addEventListener("keydown", (event) => this.key(event, box));
		g.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, box.name, [box.figures]));
		g.addEventListener("pointerleave", hideTip);
		return box;
	}

	/* A second click on the block that fills the picture shows everything again. */
	choose(box) {
		this.shown = box === this.shown ? this.whole : box;
		hideTip();
		this.fit();
	}

	key(event, box) {
		if (event.key === "Enter" || event.key === " ")
			this.choose(box);
		else if (event.key === "Escape")
			this.choose(this.whole);
		else
			return;
		event.preventDefault();
	}

	fit() {
		const width = this.svg.parentElement.clientWidth;
		if (width > 0)
			this.place(this.shown, width);
	}

	/* `shown` fills the width: its enclosing blocks fill their rows as well, others are hidden. */
	place(shown, width) {
		this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
		const scale = width / (shown === this.whole ? this.width : shown.w);
		for (const box of this.boxes) {
			const left = Math.max(0, (box.x - shown.x) * scale), right = Math.min(width, (box.x + box.w - shown.x) * scale);
			const isSeen = right - left > 0.2, most = right - left < FLAME_LEAST ? 0 : Math.floor((right - left - 8) / FLAME_LETTER);
			box.g.toggleAttribute("hidden", !isSeen);
			if (!isSeen)
				continue;
			box.rect.setAttribute("x", left);
			box.rect.setAttribute("width", right - left);
			box.text.setAttribute("x", left + 4);
			box.text.textContent = box.letters.length <= most ? box.name : most > 2 ? box.letters.slice(0, most - 1).join("") + "…" : "";
			box.g.tabIndex = most > 0 ? 0 : -1;
		}
	}
}

whenReady(() => {
	const svg = document.querySelector("#flame ~ .picture svg");
	if (svg)
		new Flame(svg);
});
