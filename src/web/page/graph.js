// @ts-check
// Draws what the daemon has laid out, as a picture. The list below it says the same.

import { byId, make } from './dom.js';

/** The length of an arrow's head, and half of its width. */
const HEAD = [8, 4];

/**
 * An element of a picture.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(string | Node)} children
 */
export function svg(tag, attributes, ...children) {
  // The document has an empty picture, which gives the namespace of pictures.
  const made = document.createElementNS(byId('picture').namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/**
 * @param {any} it
 * @param {string} kind
 */
function textNode(it, kind) {
  const box = svg('rect', { class: kind, x: it.x, y: it.y, width: it.width, height: it.height, rx: 4 });
  const at = { class: kind, x: it.x + it.width / 2, y: it.y + it.height / 2 };
  return [box, svg('text', at, it.text)];
}

/** @param {any} edge */
function edgeNode(edge) {
  const points = edge.points.map((/** @type {number[]} */ it) => it.join(',')).join(' ');
  // A line goes into a box on its left, and out of one on its right.
  const [[x, y], away] = edge.backwards ? [edge.points[0], 1] : [edge.points[edge.points.length - 1], -1];
  const base = x + away * HEAD[0];
  const head = `${x},${y} ${base},${y - HEAD[1]} ${base},${y + HEAD[1]}`;
  return [svg('polyline', { class: 'edge', points }), svg('polygon', { class: 'head', points: head })];
}

/**
 * @param {string} title
 * @param {any} drawing
 * @returns {HTMLElement[]}
 */
export function graphNode(title, drawing) {
  const { width, height, nodes, edges, more } = drawing;
  const label = `A drawing of ${edges.length} waits; the list below says the same.`;
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
    ...edges.flatMap(edgeNode),
    ...edges.flatMap((/** @type {any} */ it) => textNode(it.label, 'label')),
    ...nodes.flatMap((/** @type {any} */ it) => textNode(it, 'node')));
  const frame = make('div', { class: 'graph', tabindex: '0', role: 'region', 'aria-label': title });
  frame.append(picture);
  return more ? [frame, make('p', { class: 'quiet' }, `${more} more waits are in the list alone.`)] : [frame];
}
