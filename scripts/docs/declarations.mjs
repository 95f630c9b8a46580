// Reads the declaration files of tsc: the exported names of an entry point, with text and comment.
import { readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

/** Index after a string, template or comment that begins at `at`; `at` if none does. */
function skipQuoted(text, at) {
  if (text.startsWith('/*', at)) return text.indexOf('*/', at) + 2;
  if (text.startsWith('//', at)) return text.indexOf('\n', at);
  if (!`'"\``.includes(text[at])) return at;
  let end = at + 1;
  while (text[end] !== text[at]) end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

/** Index after the statement at `start`: its semicolon outside all brackets, or the brace that closes its body. */
function statementEnd(text, start) {
  const hasBody = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface)\b/.test(text.slice(start, start + 40));
  let depth = 0;
  for (let at = start; at < text.length;) {
    const next = skipQuoted(text, at);
    if (next !== at) {
      at = next;
      continue;
    }
    if ('({['.includes(text[at])) depth++;
    else if (')}]'.includes(text[at])) depth--;
    if (depth === 0 && text[at] === (hasBody ? '}' : ';')) return at + 1;
    at++;
  }
  throw new Error(`a declaration without an end: ${text.slice(start, start + 80)}`);
}

/** The statements of a file, each with the comment before it. */
export function splitStatements(text) {
  const statements = [];
  let comment = null;
  for (let at = 0; at < text.length;) {
    if (/\s/.test(text[at])) at++;
    else if (text.startsWith('/*', at) || text.startsWith('//', at)) {
      const end = skipQuoted(text, at);
      if (text.startsWith('/**', at)) comment = sentencesOf(text.slice(at, end));
      at = end === -1 ? text.length : end;
    } else {
      const end = statementEnd(text, at);
      statements.push({ text: text.slice(at, end), comment });
      comment = null;
      at = end;
    }
  }
  return statements;
}

/** The text of a comment without its stars; keeps paragraphs. */
function sentencesOf(comment) {
  const lines = comment.slice(3, -2).split('\n');
  const paragraphs = lines
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .join('\n')
    .trim()
    .split(/\n{2,}/);
  return paragraphs.map((paragraph) => paragraph.replaceAll('\n', ' ')).join('\n\n');
}

const DECLARED = /^(?:export )?(?:declare )?(?:abstract )?(const|function|class|interface|type) ([\w$]+)/;

/** A reader of declaration files below `root` that parses each once. */
export function createDeclarationReader(root) {
  const files = new Map();
  const load = (path) => {
    if (!files.has(path)) files.set(path, splitStatements(readFileSync(path, 'utf8')));
    return files.get(path);
  };
  const target = (path, specifier) => join(dirname(path), specifier.replace(/\.(?:ts|js)$/, '.d.ts'));
  const namesIn = (list) =>
    list.split(',').flatMap((part) => {
      const match = /^\s*(?:type )?([\w$]+)(?: as ([\w$]+))?\s*$/.exec(part);
      return match === null ? [] : [{ from: match[1], to: match[2] ?? match[1] }];
    });

  function findDeclaration(path, name) {
    const parts = load(path).filter(({ text }) => DECLARED.exec(text)?.[2] === name);
    if (parts.length === 0) {
      for (const { text } of load(path)) {
        const match = /^import (?:type )?\{([^}]*)\} from '(\.[^']+)'/.exec(text);
        const imported = match === null ? undefined : namesIn(match[1]).find(({ to }) => to === name);
        if (imported !== undefined) return exportsOf(target(path, match[2])).get(imported.from);
      }
      throw new Error(`${relative(root, path)} exports ${name} and does not declare it`);
    }
    const kind = DECLARED.exec(parts[0].text)[1];
    const source = parts.map(({ text }) => text.replace(/^(?:export )?(?:declare )?/, '')).join('\n');
    const comment = parts.find((part) => part.comment !== null)?.comment ?? null;
    return { name, kind, source, comment, file: relative(root, path).split(sep).join('/') };
  }

  /** Every export of a file by name, wherever it is declared. */
  function exportsOf(path) {
    const entries = new Map();
    for (const { text } of load(path)) {
      const list = /^export (?:type )?\{([^}]*)\}(?: from '(\.[^']+)')?/.exec(text);
      const all = /^export \* from '(\.[^']+)'/.exec(text);
      if (all !== null) for (const [name, entry] of exportsOf(target(path, all[1]))) entries.set(name, entry);
      else if (list !== null) {
        for (const { from, to } of namesIn(list[1])) {
          const entry =
            list[2] === undefined ? findDeclaration(path, from) : exportsOf(target(path, list[2])).get(from);
          if (entry === undefined) throw new Error(`${relative(root, path)}: ${from} is not in ${list[2]}`);
          entries.set(to, { ...entry, name: to });
        }
      } else if (text.startsWith('export ')) {
        const name = DECLARED.exec(text)?.[2];
        if (name === undefined) throw new Error(`${relative(root, path)}: cannot read ${text.slice(0, 80)}`);
        entries.set(name, findDeclaration(path, name));
      }
    }
    return entries;
  }
  return { exportsOf };
}
