import { evaluate, evaluateArguments, evaluateCallee, evaluateFilter } from './expressions.ts';
import type { Call } from './expressions.ts';
import { iterate } from './filters.ts';
import { createScope } from './scope.ts';
import type { Scope } from './scope.ts';
import type { SyntaxNode } from './syntax.ts';
import { toText } from './to-text.ts';
import { isTruthy, Namespace, templateError, typeName } from './values.ts';
import type { Callable, RenderContext, Value } from './values.ts';

/** The text of a block so far. */
interface Output {
  write(text: string): void;
  text(): string;
}

/** How a block ended: `break` and `continue` propagate to their loop and keep the text before them. */
type Completion = 'normal' | 'break' | 'continue';

type Body = readonly SyntaxNode[];
interface Identifier extends SyntaxNode {
  value: string;
}
interface If extends SyntaxNode {
  test: SyntaxNode;
  body: Body;
  alternate: Body;
}
interface For extends SyntaxNode {
  loopvar: SyntaxNode;
  iterable: SyntaxNode;
  body: Body;
  defaultBlock: Body;
}
interface Select extends SyntaxNode {
  lhs: SyntaxNode;
  test: SyntaxNode;
}
interface SetNode extends SyntaxNode {
  assignee: SyntaxNode;
  value: SyntaxNode | null;
  body: Body;
}
interface Member extends SyntaxNode {
  object: SyntaxNode;
  property: Identifier;
}
interface Parameter extends SyntaxNode {
  value: unknown;
  key?: Identifier;
}
interface Macro extends SyntaxNode {
  name: Identifier;
  args: readonly Parameter[];
  body: Body;
}
interface CallBlock extends SyntaxNode {
  call: Call;
  callerArgs: readonly Parameter[] | null;
  body: Body;
}
interface FilterBlock extends SyntaxNode {
  filter: SyntaxNode;
  body: Body;
}

type Statement<N extends SyntaxNode> = (context: RenderContext, node: N, scope: Scope, out: Output) => Completion;

function createOutput({ budget }: RenderContext): Output {
  const parts: string[] = [];
  let length = 0;
  return {
    write(text) {
      length += text.length;
      budget.output(length, text.length);
      parts.push(text);
    },
    text: () => parts.join(''),
  };
}

/** Runs statements in order; prints the value of expressions. */
function renderBlock(context: RenderContext, body: Body, scope: Scope, out: Output): Completion {
  for (const node of body) {
    const statement = STATEMENTS.get(node.type);
    if (statement === undefined) {
      out.write(toText(context.budget, evaluate(context, node, scope)));
      continue;
    }
    context.budget.step();
    context.budget.enter();
    const completion = statement(context, node as never, scope, out);
    context.budget.leave();
    if (completion !== 'normal') return completion;
  }
  return 'normal';
}

export function renderToText(context: RenderContext, body: Body, scope: Scope): string {
  const out = createOutput(context);
  renderBlock(context, body, scope, out);
  return out.text();
}

function assign(context: RenderContext, target: SyntaxNode, value: Value, scope: Scope): void {
  if (target.type === 'Identifier') {
    scope.names.set((target as Identifier).value, value);
  } else if (target.type === 'TupleLiteral') {
    const targets = (target as unknown as { value: Body }).value;
    const items = iterate(context.budget, value);
    if (items.length !== targets.length) {
      throw templateError(`cannot unpack ${items.length} values into ${targets.length} names`);
    }
    targets.forEach((item, i) => assign(context, item, items[i], scope));
  } else if (target.type === 'MemberExpression') {
    const { object, property } = target as Member;
    const namespace = evaluate(context, object, scope);
    if (!(namespace instanceof Namespace) || property.type !== 'Identifier') {
      throw templateError(`set can write to a namespace's attributes only, not to ${typeName(namespace)}`);
    }
    context.budget.items(namespace.entries.size + 1);
    namespace.entries.set(property.value, value);
  } else throw templateError(`set cannot write to ${target.type}`);
}

const forLoop: Statement<For> = (context, node, scope, out) => {
  const { budget } = context;
  const isFiltered = node.iterable.type === 'SelectExpression';
  const source = isFiltered ? (node.iterable as Select).lhs : node.iterable;
  let items = [...iterate(budget, evaluate(context, source, scope))];
  budget.items(items.length);
  if (isFiltered) {
    const { test } = node.iterable as Select;
    items = items.filter((item) => {
      const itemScope = createScope(scope);
      assign(context, node.loopvar, item, itemScope);
      return isTruthy(evaluate(context, test, itemScope));
    });
  }
  for (const [i, item] of items.entries()) {
    budget.step();
    const itemScope = createScope(scope, [['loop', loopVariable(items, i)]]);
    assign(context, node.loopvar, item, itemScope);
    if (renderBlock(context, node.body, itemScope, out) === 'break') break;
  }
  return items.length === 0 ? renderBlock(context, node.defaultBlock, scope, out) : 'normal';
};

function loopVariable(items: readonly Value[], i: number): Value {
  return new Map<string, Value>([
    ['index', i + 1],
    ['index0', i],
    ['revindex', items.length - i],
    ['revindex0', items.length - i - 1],
    ['first', i === 0],
    ['last', i === items.length - 1],
    ['length', items.length],
    ['previtem', items[i - 1]],
    ['nextitem', items[i + 1]],
    ['cycle', ({ positional }) => positional[i % Math.max(1, positional.length)]],
  ]);
}

/** A macro or the body of a call block as a function; it sees the names at its definition. */
function createMacro(context: RenderContext, parameters: readonly Parameter[], body: Body, scope: Scope): Callable {
  return (args) => {
    const inner = createScope(scope);
    const keywordArguments = new Map(args.named);
    parameters.forEach((parameter, i) => {
      const name = parameter.key?.value ?? (parameter.value as string);
      let value = i < args.positional.length ? args.positional[i] : keywordArguments.get(name);
      if (value === undefined && parameter.key !== undefined) {
        value = evaluate(context, parameter.value as SyntaxNode, inner);
      }
      keywordArguments.delete(name);
      inner.names.set(name, value);
    });
    if (!inner.names.has('varargs')) inner.names.set('varargs', args.positional.slice(parameters.length));
    if (!inner.names.has('kwargs')) inner.names.set('kwargs', keywordArguments);
    if (args.caller !== undefined) inner.names.set('caller', args.caller);
    return renderToText(context, body, inner);
  };
}

const STATEMENTS: ReadonlyMap<string, Statement<never>> = new Map<string, Statement<never>>([
  ['Comment', () => 'normal'],
  ['Break', () => 'break'],
  ['Continue', () => 'continue'],
  [
    'If',
    (context, node: If, scope, out) =>
      renderBlock(context, isTruthy(evaluate(context, node.test, scope)) ? node.body : node.alternate, scope, out),
  ],
  ['For', forLoop],
  [
    'Set',
    (context, node: SetNode, scope) => {
      const value =
        node.value === null
          ? renderToText(context, node.body, createScope(scope))
          : evaluate(context, node.value, scope);
      assign(context, node.assignee, value, scope);
      return 'normal';
    },
  ],
  [
    'Macro',
    (context, node: Macro, scope) => {
      scope.names.set(node.name.value, createMacro(context, node.args, node.body, scope));
      return 'normal';
    },
  ],
  [
    'CallStatement',
    (context, node: CallBlock, scope, out) => {
      const caller = createMacro(context, node.callerArgs ?? [], node.body, scope);
      const callee = evaluateCallee(context, node.call.callee, scope);
      const args = evaluateArguments(context, node.call.args, scope);
      out.write(toText(context.budget, callee({ ...args, caller })));
      return 'normal';
    },
  ],
  [
    'FilterStatement',
    (context, node: FilterBlock, scope, out) => {
      const text = renderToText(context, node.body, createScope(scope));
      out.write(toText(context.budget, evaluateFilter(context, node.filter, text, scope)));
      return 'normal';
    },
  ],
]);
