// Writes dist/docs from docs/: one HTML page for each Markdown file, without scripts. The server serves them at /docs.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { Marked } from 'marked';
import { root } from './setup.mjs';

const [out = join(root, 'dist/docs')] = process.argv.slice(2);

/** Read by those who change the code, in the repository. */
const NOT_FOR_USERS = /^(?:decisions\/|log\.md$)/;

/** Pages outside docs/ by their place on the site. */
const ROOT_PAGES = {
  'README.md': 'readme.html',
  'CHANGELOG.md': 'changelog.html',
  'CONTRIBUTING.md': 'contributing.html',
  'SECURITY.md': 'security-policy.html',
  'examples/README.md': 'examples.html',
};

const escape = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Sources by path in the repository, with their place on the site. */
function listPages() {
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md') && !NOT_FOR_USERS.test(path))
    .map((path) => [`docs/${path}`, path.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html')]);
  return new Map([...Object.entries(ROOT_PAGES), ...inDocs].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The id of a heading, as GitHub makes it. */
const slugOf = (text) =>
  text
    .toLowerCase()
    .replace(/<[^>]*>|&[a-z]+;/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** Turns a page into HTML; links to other pages lead to the site, those to files that are not on it become plain text. */
function renderPage(source, pages) {
  const place = pages.get(source);
  const slugs = new Map();
  let title = null;
  const resolve = (href) => {
    if (/^(?:[a-z]+:|#)/i.test(href)) return href;
    const [path, fragment] = href.split('#');
    const target = posix.normalize(posix.join(posix.dirname(source), path));
    const page = pages.get(target) ?? (target.startsWith('docs/images/') ? target.slice('docs/'.length) : null);
    if (page === null) return null;
    return posix.relative(posix.dirname(place), page) + (fragment === undefined ? '' : `#${fragment}`);
  };
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        if (depth === 1) title ??= html.replace(/<[^>]*>/g, '');
        const slug = slugOf(html);
        const count = slugs.get(slug) ?? 0;
        slugs.set(slug, count + 1);
        return `<h${depth} id="${count === 0 ? slug : `${slug}-${count}`}">${html}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = resolve(href);
        return target === null ? text : `<a href="${escape(target)}">${text}</a>`;
      },
      image({ href, text }) {
        const target = resolve(href);
        return target === null ? escape(text) : `<img src="${escape(target)}" alt="${escape(text)}">`;
      },
      table({ header, rows }) {
        const cells = (row, tag) => row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join(''); // prettier-ignore
        const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
        return `<div class="table" tabindex="0"><table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>${body}</tbody></table></div>\n`; // prettier-ignore
      },
    },
  });
  const html = marked.parse(readFileSync(join(root, source), 'utf8'));
  return { html, title: title ?? source };
}

/** The pages that docs/README.md lists before its design section, by section. */
function readNavigation(pages) {
  const [guides] = readFileSync(join(root, 'docs/README.md'), 'utf8').split('\n## Design');
  return guides
    .split(/\n## /)
    .slice(1)
    .map((section) => ({
      title: section.split('\n')[0],
      links: [...section.matchAll(/\[([^\]]+)\]\(([^)]+\.md)\)/g)].flatMap(([, text, href]) => {
        const place = pages.get(posix.normalize(posix.join('docs', href)));
        return place === undefined ? [] : [{ text, place }];
      }),
    }));
}

function writePage(place, { html, title }, navigation) {
  const to = (target) => escape(posix.relative(posix.dirname(place), target) || posix.basename(target));
  const sections = navigation
    .map(({ title: name, links }) => {
      const items = links.map(({ text, place: target }) => `<li><a href="${to(target)}"${target === place ? ' aria-current="page"' : ''}>${escape(text)}</a></li>`); // prettier-ignore
      return `<h2>${escape(name)}</h2><ul>${items.join('')}</ul>`;
    })
    .join('');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} · RuvLLM</title>
<link rel="stylesheet" href="${to('docs.css')}">
<header><a href="${to('index.html')}">RuvLLM documentation</a></header>
<div class="page">
<nav aria-label="Pages">${sections}</nav>
<main>
${html}</main>
</div>
</html>
`;
}

const pages = listPages();
rmSync(out, { recursive: true, force: true });
const navigation = readNavigation(pages);
for (const [source, place] of pages) {
  mkdirSync(dirname(join(out, place)), { recursive: true });
  writeFileSync(join(out, place), writePage(place, renderPage(source, pages), navigation));
}
cpSync(join(root, 'docs/images'), join(out, 'images'), { recursive: true });
cpSync(join(root, 'scripts/docs.css'), join(out, 'docs.css'));
