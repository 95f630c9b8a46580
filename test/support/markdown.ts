/** A fenced block: ```` ```sh run ```` has the language `sh` and the mark `run`. */
export interface CodeBlock {
  readonly language: string;
  readonly marks: readonly string[];
  readonly text: string;
  readonly line: number;
}

/** The parts of a page that the documentation checks use. */
export interface MarkdownPage {
  readonly blocks: readonly CodeBlock[];
  /** Inline code, each on one line. */
  readonly codes: readonly string[];
  readonly links: readonly string[];
  /** Anchors of its headings, as on GitHub. */
  readonly anchors: ReadonlySet<string>;
}

/** Reads the subset of Markdown used in this repository. */
export function readMarkdown(text: string): MarkdownPage {
  const blocks: CodeBlock[] = [];
  const prose: string[] = [];
  let open: { fence: string; info: string[]; lines: string[]; line: number } | null = null;
  for (const [i, line] of text
    .replaceAll(/<!--[^]*?-->/g, '')
    .split('\n')
    .entries()) {
    const fence = /^\s*(`{3,})(.*)$/.exec(line);
    if (open === null && fence !== null) {
      open = { fence: fence[1]!, info: fence[2]!.trim().split(/\s+/), lines: [], line: i + 1 };
    } else if (open === null) {
      prose.push(line);
    } else if (fence !== null && fence[1] === open.fence && fence[2]!.trim() === '') {
      const [language = '', ...marks] = open.info;
      blocks.push({ language, marks, text: open.lines.join('\n'), line: open.line });
      open = null;
    } else {
      open.lines.push(line);
    }
  }
  const proseText = prose.join('\n');
  return {
    blocks,
    codes: Array.from(proseText.matchAll(/`([^`]+)`/g), ([, code]) => code!.replaceAll(/\s+/g, ' ').trim()),
    links: Array.from(proseText.replaceAll(/`[^`]+`/g, '').matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target!),
    anchors: anchorsOf(prose),
  };
}

function anchorsOf(lines: readonly string[]): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const line of lines) {
    const title = /^#{1,6} (.+)$/.exec(line)?.[1];
    if (title === undefined) continue;
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const name = plain.replaceAll(/[^\p{L}\p{N}\p{Pc} -]/gu, '').replaceAll(' ', '-');
    let anchor = name;
    for (let i = 1; anchors.has(anchor); i++) anchor = `${name}-${i}`;
    anchors.add(anchor);
  }
  return anchors;
}
