"use strict";
// Searches SECTIONS (sections.py): rows of address, title, titles above it, text, and whether it documents a name.

const SHOWN = 40;
const COMMON = new Set(
  (
    "a an and are as at be by can did do does for from get go goes has how i in into is it its me my of on or s that the " +
    "this to was went what when where which why will with you"
  ).split(" "),
);
const ENDING = "(?:acy|acies|ate|ately|e?ments?|ings?|ied|ies|ers?|ed|es|s|e|y)";
const LETTER = "[\\p{L}\\p{N}]";

// The words of a query that say something, all of them if none does.
function words(text) {
  const all = text.toLowerCase().match(/[\p{L}\p{N}_.]*[\p{L}\p{N}_]/gu) || [];
  const rare = all.filter((word) => !COMMON.has(word));
  return [...new Set(rare.length ? rare : all)];
}

// What finds a word and its other forms; of three letters or less only the word and its plural.
function pattern(word) {
  const stem = word.length > 4 ? word.replace(new RegExp(`${ENDING}$`), "") : word;
  const text = (stem.length > 2 ? stem : word).replaceAll(".", "\\.");
  return new RegExp(`(?<!${LETTER})${text}${word.length > 3 ? ENDING : "s"}?(?!${LETTER})`, "giu");
}

const count = (text, wanted) => (text.match(wanted) || []).length;

// What a word adds to a section: most in its title, less in the titles above it, least in its text, however often.
function points([, title, path, text, isName], wanted, word) {
  const others = isName ? Infinity : words(title.replaceAll(/[._]/g, " ")).length;
  const parts = title.replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2"); // AdamOptimizer: Adam Optimizer
  const inTitle = count(title, wanted) || count(parts, wanted) ? 4 + 8 / others : title.toLowerCase().includes(word) ? 1 : 0;
  const above = count(path.join(" "), wanted) ? 2 : 0;
  const often = count(text, wanted);
  return (inTitle + above + (3 * often) / (often + 1 + text.length / 6000)) * (isName ? 0.4 : 1);
}

// The sections that have at least one of the words, best first.
function find(query) {
  const sought = words(query);
  const wanted = sought.map(pattern);
  const rows = SECTIONS.map((section) => ({ section, points: wanted.map((p, n) => points(section, p, sought[n])) }));
  const rarity = wanted.map((_, n) => Math.log(1 + rows.length / (1 + rows.filter((row) => row.points[n]).length)));
  const all = rarity.reduce((a, b) => a + b, 0);
  const name = query.trim().toLowerCase();
  for (const row of rows) {
    const title = row.section[1].toLowerCase();
    const covered = rarity.reduce((sum, weight, n) => sum + (row.points[n] ? weight : 0), 0) / all;
    row.score = covered ** 3 * row.points.reduce((sum, p, n) => sum + p * rarity[n], 0);
    if (title === name) row.score += 50;
    else if (title.endsWith(`.${name.replaceAll(" ", "")}`)) row.score += /[A-Z._ ]/.test(query) ? 50 : 2; // a plain word says less
  }
  const found = rows.filter((row) => row.score > 0).sort((a, b) => b.score - a.score);
  const seen = {}; // one page does not fill the list: its sections count less and less
  for (const row of found) {
    const page = row.section[0].split("#")[0];
    seen[page] = (seen[page] ?? -1) + 1;
    row.score *= 0.85 ** seen[page];
  }
  return { wanted, found: found.sort((a, b) => b.score - a.score).map((row) => row.section) };
}

// Text around the first place where most of the words are, the words marked.
function context(text, wanted) {
  const at = wanted.flatMap((p) => [...text.matchAll(p)].slice(0, 100).map((match) => [match.index, p]));
  const near = ([start]) => new Set(at.filter(([n]) => n >= start && n < start + 200).map(([, p]) => p)).size;
  const best = at.reduce((a, b) => (a && near(a) >= near(b) ? a : b), null);
  const from = best ? Math.max(0, text.lastIndexOf(" ", Math.max(0, best[0] - 40)) + 1) : 0;
  const shown = text.slice(from, from + 260);
  const line = document.createElement("p");
  line.className = "context";
  const marks = wanted.flatMap((p) => [...shown.matchAll(p)].map((m) => [m.index, m.index + m[0].length]));
  let done = 0;
  line.append(from ? "… " : "");
  for (const [start, end] of marks.sort((a, b) => a[0] - b[0])) {
    if (start < done) continue;
    line.append(shown.slice(done, start), Object.assign(document.createElement("mark"), { textContent: shown.slice(start, end) }));
    done = end;
  }
  line.append(shown.slice(done), from + 260 < text.length ? " …" : "");
  return line;
}

function show(query) {
  const { wanted, found } = find(query);
  const summary = Object.assign(document.createElement("p"), { className: "search-summary" });
  summary.textContent = found.length
    ? `${found.length} sections found for “${query}”${found.length > SHOWN ? `; the best ${SHOWN}` : ""}.`
    : `Nothing found for “${query}”.`;
  const list = Object.assign(document.createElement("ul"), { className: "search" });
  for (const [address, title, path, text] of found.slice(0, SHOWN)) {
    const item = document.createElement("li");
    const above = Object.assign(document.createElement("span"), { className: "above", textContent: path.join(" › ") });
    item.append(Object.assign(document.createElement("a"), { href: address, textContent: title }), above);
    item.append(context(text, wanted));
    list.append(item);
  }
  document.querySelector("#search-results").replaceChildren(summary, list);
}

const query = new URLSearchParams(location.search).get("q") || "";
document.querySelector(".sidebar-search").value = query;
if (query.trim()) show(query);
