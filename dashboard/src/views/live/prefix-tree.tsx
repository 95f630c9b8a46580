import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { type PrefixNode, type PrefixTree, readPrefixTree } from '../../api/live.ts';
import { client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { placeTree, stepInTree } from './tree-layout.ts';

const EVERY_MS = 5000;
/** Shades there are for how often a node was of use. */
const NUM_SHADES = 5;

/** What is kept of computed prompts: a picture to walk and zoom in. */
export function PrefixTreeCard({ model }: { model: string }) {
  const tree = useResource((signal) => readPrefixTree(client, model, signal), [model], { everyMs: EVERY_MS });
  return (
    <section class="card stack" aria-label="Prefix tree">
      <h2>Prefixes kept</h2>
      {tree.error.value !== null && <ErrorNotice error={tree.error.value} onRetry={tree.reload} />}
      {tree.data.value === null && tree.error.value === null && <Loading what="Reading the tree" />}
      {tree.data.value !== null && <TreePicture tree={tree.data.value} />}
    </section>
  );
}

function TreePicture({ tree }: { tree: PrefixTree }) {
  const zoomed = useSignal<number | null>(null);
  const chosen = useSignal<number | null>(null);
  const host = useRef<HTMLDivElement>(null);
  const { nodes } = tree;
  const root = nodes.some(({ id }) => id === zoomed.value) ? zoomed.value : null;
  const placed = useMemo(() => placeTree(nodes, root), [nodes, root]);
  if (nodes.length === 0) return <p class="soft">Nothing is kept yet: ask the model something.</p>;
  const at = placed.find(({ node }) => node.id === chosen.value)?.node ?? placed[0]!.node;
  const mostHits = Math.max(1, ...nodes.map(({ hits }) => hits));

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Enter' || event.key === '+') zoomed.value = at.id;
    else if (event.key === 'Escape' || event.key === '-') zoomed.value = parentOf(nodes, root);
    else {
      const next = stepInTree(event.key, at, nodes);
      if (next === null) return;
      if (!placed.some(({ node }) => node.id === next.id)) zoomed.value = next.id;
      chosen.value = next.id;
    }
    event.preventDefault();
    requestAnimationFrame(() => host.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus());
  }

  return (
    <>
      <div class="row">
        <p class="soft small">
          Tokens from left to right, {tree.page_tokens} to a page; the stronger its colour, the more often it was of
          use. Enter or a double click zooms in, Escape zooms out.
          {!tree.is_complete && ' Only the most used ones are shown.'}
        </p>
        <Button isSmall isDisabled={root === null} onClick={() => (zoomed.value = parentOf(nodes, root))}>
          Zoom out
        </Button>
      </div>
      <div class="prefix-tree" role="tree" aria-label="Kept prefixes" ref={host} onKeyDown={onKeyDown}>
        {placed.map(({ node, left, width, top, height, level }) => (
          <div
            key={node.id}
            role="treeitem"
            class="prefix-node"
            aria-level={level}
            aria-selected={node.id === at.id}
            aria-label={`${previewOf(node)} ${describe(node)}`}
            tabIndex={node.id === at.id ? 0 : -1}
            title={describe(node)}
            data-shade={shadeOf(node.hits, mostHits)}
            style={{
              left: `${left * 100}%`,
              width: `${width * 100}%`,
              top: `${top * 100}%`,
              height: `${height * 100}%`,
            }}
            onClick={() => (chosen.value = node.id)}
            onFocus={() => (chosen.value = node.id)}
            onDblClick={() => (zoomed.value = node.id)}
          >
            {previewOf(node)}
          </div>
        ))}
      </div>
      <NodeDetails node={at} />
    </>
  );
}

function NodeDetails({ node }: { node: PrefixNode }) {
  return (
    <div class="prefix-details">
      <dl class="pairs">
        <dt>Tokens</dt>
        <dd>
          {formatCount(node.num_tokens)} from {formatCount(node.start_token)}
        </dd>
        <dt>Of use</dt>
        <dd>
          {formatCount(node.hits)} {node.hits === 1 ? 'time' : 'times'}, last {formatCount(node.last_use)} calls of the
          cache ago
        </dd>
        <dt>Takes</dt>
        <dd>
          {formatBytes(node.bytes)}: {formatCount(node.float_pages)} pages as computed, {formatCount(node.packed_pages)}{' '}
          packed
        </dd>
        <dt>Of</dt>
        <dd>
          {visibleText(node.tenant)}
          {node.adapter !== null && `, adapter ${visibleText(node.adapter)}`}
          {node.is_session && ', held by a session'}
        </dd>
      </dl>
      {node.text !== null && (
        <pre class="prefix-text" dir="auto">
          {visibleText(node.text)}
        </pre>
      )}
    </div>
  );
}

const previewOf = ({ text }: PrefixNode): string => visibleText(text ?? '').slice(0, 80);

const describe = ({ num_tokens, hits, bytes, num_children }: PrefixNode): string =>
  `${formatCount(num_tokens)} tokens, ${formatBytes(bytes)}, of use ${formatCount(hits)} times, ${formatCount(num_children)} branches`;

const parentOf = (nodes: readonly PrefixNode[], id: number | null): number | null =>
  nodes.find((node) => node.id === id)?.parent ?? null;

/** From 0, never of use, to the darkest; by magnitude, as a few are used a thousand times as often as the others. */
export function shadeOf(hits: number, mostHits: number): number {
  if (hits <= 0) return 0;
  return 1 + Math.round(((NUM_SHADES - 1) * Math.log1p(hits)) / Math.log1p(Math.max(1, mostHits)));
}
