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
import { messages } from '../../messages/index.ts';
import { placeTree, stepInTree } from './tree-layout.ts';

const text = messages.live;
const REFRESH_MS = 5000;
/** Shades that encode the number of hits. */
const NUM_SHADES = 5;

/** The prefix cache as a diagram that can be navigated and zoomed. */
export function PrefixTreeCard({ model }: { model: string }) {
  const tree = useResource((signal) => readPrefixTree(client, model, signal), [model], { everyMs: REFRESH_MS });
  return (
    <section class="card stack" aria-label={text.prefixCache}>
      <h2>{text.prefixCache}</h2>
      {tree.error.value !== null && <ErrorNotice error={tree.error.value} onRetry={tree.reload} />}
      {tree.data.value === null && tree.error.value === null && <Loading label={text.loadingPrefixes} />}
      {tree.data.value !== null && <TreeDiagram tree={tree.data.value} />}
    </section>
  );
}

function TreeDiagram({ tree }: { tree: PrefixTree }) {
  const zoomId = useSignal<number | null>(null);
  const selectedId = useSignal<number | null>(null);
  const host = useRef<HTMLDivElement>(null);
  const { nodes } = tree;
  const root = nodes.some(({ id }) => id === zoomId.value) ? zoomId.value : null;
  const layout = useMemo(() => placeTree(nodes, root), [nodes, root]);
  if (nodes.length === 0) return <p class="soft">{text.noPrefixes}</p>;
  const selectedNode = layout.find(({ node }) => node.id === selectedId.value)?.node ?? layout[0]!.node;
  const maxHits = Math.max(1, ...nodes.map(({ hits }) => hits));

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Enter' || event.key === '+') zoomId.value = selectedNode.id;
    else if (event.key === 'Escape' || event.key === '-') zoomId.value = parentOf(nodes, root);
    else {
      const next = stepInTree(event.key, selectedNode, nodes);
      if (next === null) return;
      if (!layout.some(({ node }) => node.id === next.id)) zoomId.value = next.id;
      selectedId.value = next.id;
    }
    event.preventDefault();
    requestAnimationFrame(() => host.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus());
  }

  return (
    <>
      <div class="row">
        <p class="soft small">
          {text.prefixHint(formatCount(tree.page_tokens))}
          {!tree.is_complete && ` ${text.prefixesIncomplete}`}
        </p>
        <Button isSmall isDisabled={root === null} onClick={() => (zoomId.value = parentOf(nodes, root))}>
          {text.zoomOut}
        </Button>
      </div>
      <div class="prefix-tree" role="tree" aria-label={text.prefixes} ref={host} onKeyDown={onKeyDown}>
        {layout.map(({ node, left, width, top, height, level }) => (
          <div
            key={node.id}
            role="treeitem"
            class="prefix-node"
            aria-level={level}
            aria-selected={node.id === selectedNode.id}
            aria-label={`${previewOf(node)} ${describe(node)}`}
            tabIndex={node.id === selectedNode.id ? 0 : -1}
            title={describe(node)}
            data-shade={shadeOf(node.hits, maxHits)}
            style={{
              left: `${left * 100}%`,
              width: `${width * 100}%`,
              top: `${top * 100}%`,
              height: `${height * 100}%`,
            }}
            onClick={() => (selectedId.value = node.id)}
            onFocus={() => (selectedId.value = node.id)}
            onDblClick={() => (zoomId.value = node.id)}
          >
            {previewOf(node)}
          </div>
        ))}
      </div>
      <NodeDetails node={selectedNode} />
    </>
  );
}

function NodeDetails({ node }: { node: PrefixNode }) {
  return (
    <div class="prefix-details">
      <dl class="pairs">
        <dt>{text.node.tokens}</dt>
        <dd>{text.node.range(formatCount(node.num_tokens), formatCount(node.start_token))}</dd>
        <dt>{text.node.hits}</dt>
        <dd>{text.node.lastUse(node.hits, node.last_use)}</dd>
        <dt>{text.node.size}</dt>
        <dd>{text.node.pages(formatBytes(node.bytes), node.float_pages, node.packed_pages)}</dd>
        <dt>{text.node.tenant}</dt>
        <dd>
          {visibleText(node.tenant)}
          {node.adapter !== null && text.node.adapter(visibleText(node.adapter))}
          {node.is_session && text.node.isSession}
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

const previewOf = (node: PrefixNode): string => visibleText(node.text ?? '').slice(0, 80);

const describe = ({ num_tokens, hits, bytes, num_children }: PrefixNode): string =>
  text.node.summary(num_tokens, formatBytes(bytes), hits, num_children);

const parentOf = (nodes: readonly PrefixNode[], id: number | null): number | null =>
  nodes.find((node) => node.id === id)?.parent ?? null;

/** Maps hits to a shade: 0 for none, up to `NUM_SHADES`. Logarithmic, because a few nodes get a thousand times as many hits as the others. */
export function shadeOf(hits: number, maxHits: number): number {
  if (hits <= 0) return 0;
  return 1 + Math.round(((NUM_SHADES - 1) * Math.log1p(hits)) / Math.log1p(Math.max(1, maxHits)));
}
