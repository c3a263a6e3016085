// Which part of the map is on screen: plain arithmetic between the map's own units and pixels.

/** @typedef {{id: string, title: string, x: number, y: number}} Point */

const CLOSEST = 60; // times the scale at which everything fits

export class MapView {
  /** @param {number} padding pixels left free around everything */
  constructor(padding = 22) {
    this.padding = padding;
    this.width = 1;
    this.height = 1;
    this.box = { left: -1, top: -1, right: 1, bottom: 1 };
    this.fit();
  }

  resize(width, height) {
    const fitted = this.scale === this.fittingScale();
    this.width = width;
    this.height = height;
    if (fitted) this.fit();
    else this.zoom(1);
  }

  /** @param {Point[]} points what "everything" means from now on */
  cover(points) {
    if (points.length === 0) return;
    const fitted = this.scale === this.fittingScale();
    this.box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    for (const { x, y } of points) {
      this.box.left = Math.min(this.box.left, x);
      this.box.right = Math.max(this.box.right, x);
      this.box.top = Math.min(this.box.top, y);
      this.box.bottom = Math.max(this.box.bottom, y);
    }
    if (fitted) this.fit();
  }

  fittingScale() {
    const across = Math.max(this.box.right - this.box.left, 1e-6);
    const down = Math.max(this.box.bottom - this.box.top, 1e-6);
    return Math.max(Math.min((this.width - 2 * this.padding) / across, (this.height - 2 * this.padding) / down), 1e-6);
  }

  fit() {
    this.scale = this.fittingScale();
    this.x = (this.box.left + this.box.right) / 2;
    this.y = (this.box.top + this.box.bottom) / 2;
  }

  /** How far in we are: 1 when everything fits. */
  get closeness() {
    return this.scale / this.fittingScale();
  }

  toScreen(point) {
    return [this.width / 2 + (point.x - this.x) * this.scale, this.height / 2 + (point.y - this.y) * this.scale];
  }

  /** Zoom by a factor, the given pixel staying where it is. */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const fitting = this.fittingScale();
    const scale = Math.min(Math.max(this.scale * factor, fitting), fitting * CLOSEST);
    this.x += (px - this.width / 2) * (1 / this.scale - 1 / scale);
    this.y += (py - this.height / 2) * (1 / this.scale - 1 / scale);
    this.scale = scale;
    this.stay();
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.stay();
  }

  /** Bring a point into the middle if it is outside. */
  reveal(point) {
    const [px, py] = this.toScreen(point);
    if (px >= 0 && py >= 0 && px <= this.width && py <= this.height) return;
    [this.x, this.y] = [point.x, point.y];
    this.stay();
  }

  stay() {
    this.x = Math.min(Math.max(this.x, this.box.left), this.box.right);
    this.y = Math.min(Math.max(this.y, this.box.top), this.box.bottom);
    if (this.scale === this.fittingScale()) this.fit();
  }

  /** @param {Point[]} points @returns {Point | null} the nearest one within reach of a pixel */
  pick(points, px, py, reach = 14) {
    let best = null;
    let least = reach * reach;
    for (const point of points) {
      const [x, y] = this.toScreen(point);
      const distance = (x - px) ** 2 + (y - py) ** 2;
      if (distance < least) [best, least] = [point, distance];
    }
    return best;
  }

  /** The nearest point to another in a direction: straight ahead counts more than aside. */
  beside(points, from, dx, dy) {
    let best = null;
    let least = Infinity;
    for (const point of points) {
      const ahead = (point.x - from.x) * dx + (point.y - from.y) * dy;
      const aside = Math.abs((point.x - from.x) * dy - (point.y - from.y) * dx);
      const cost = ahead + 2 * aside;
      if (ahead > 0 && aside <= 2 * ahead && cost < least) [best, least] = [point, cost];
    }
    return best;
  }
}
