import { applyFilter } from './filters.ts';
import { readAttribute, readItem, readSlice } from './members.ts';
import { BINARY_OPERATORS } from './operators.ts';
import { findPredicate } from './predicates.ts';
import { lookUp } from './scope.ts';
import type { Scope } from './scope.ts';
import type { SyntaxNode } from './syntax.ts';
import { isTruthy, templateError, typeName } from './values.ts';
import type { CallArguments, Callable, Key, RenderContext, Value } from './values.ts';

interface Named extends SyntaxNode {
  value: string;
}
interface Literal<T> extends SyntaxNode {
  value: T;
}
interface Member extends SyntaxNode {
  object: SyntaxNode;
  property: SyntaxNode;
  computed: boolean;
}
interface Slice extends SyntaxNode {
  start?: SyntaxNode;
  stop?: SyntaxNode;
  step?: SyntaxNode;
}
export interface Call extends SyntaxNode {
  callee: SyntaxNode;
  args: readonly SyntaxNode[];
}
interface Binary extends SyntaxNode {
  operator: { value: string };
  left: SyntaxNode;
  right: SyntaxNode;
}
interface Unary extends SyntaxNode {
  operator: { value: string };
  argument: SyntaxNode;
}
interface FilterUse extends SyntaxNode {
  operand: SyntaxNode;
  filter: SyntaxNode;
}
interface TestUse extends SyntaxNode {
  operand: SyntaxNode;
  negate: boolean;
  test: Named;
}
interface Ternary extends SyntaxNode {
  condition: SyntaxNode;
  trueExpr: SyntaxNode;
  falseExpr: SyntaxNode;
}
interface Select extends SyntaxNode {
  lhs: SyntaxNode;
  test: SyntaxNode;
}
interface Spread extends SyntaxNode {
  argument: SyntaxNode;
}
interface KeywordArgument extends SyntaxNode {
  key: Named;
  value: SyntaxNode;
}

type Evaluator<N extends SyntaxNode> = (context: RenderContext, node: N, scope: Scope) => Value;

const literal: Evaluator<Literal<Value>> = (_context, node) => node.value;

const list: Evaluator<Literal<readonly SyntaxNode[]>> = (context, node, scope) =>
  node.value.map((item) => evaluate(context, item, scope));

const mapping: Evaluator<Literal<ReadonlyMap<SyntaxNode, SyntaxNode>>> = (context, node, scope) => {
  const entries = new Map<Key, Value>();
  for (const [keyNode, valueNode] of node.value) {
    const key = evaluate(context, keyNode, scope);
    if (typeof key !== 'string' && typeof key !== 'number') {
      throw templateError(`mapping keys must be strings or numbers, got ${typeName(key)}`);
    }
    entries.set(key, evaluate(context, valueNode, scope));
  }
  return entries;
};

const member: Evaluator<Member> = (context, node, scope) => {
  const object = evaluate(context, node.object, scope);
  if (node.property.type === 'SliceExpression') {
    const { start, stop, step } = node.property as Slice;
    const bounds = [start, stop, step].map((bound) => bound && evaluate(context, bound, scope));
    return readSlice(context, object, bounds);
  }
  if (node.computed || node.property.type !== 'Identifier') {
    return readItem(context, object, evaluate(context, node.property, scope));
  }
  return readAttribute(context, object, (node.property as Named).value);
};

const binary: Evaluator<Binary> = (context, node, scope) => {
  const left = evaluate(context, node.left, scope);
  const operator = node.operator.value;
  if (operator === 'and') return isTruthy(left) ? evaluate(context, node.right, scope) : left;
  if (operator === 'or') return isTruthy(left) ? left : evaluate(context, node.right, scope);
  const compute = BINARY_OPERATORS.get(operator);
  if (compute === undefined) throw templateError(`unknown operator "${operator}"`);
  return compute(context.budget, left, evaluate(context, node.right, scope));
};

const unary: Evaluator<Unary> = (context, node, scope) => {
  const value = evaluate(context, node.argument, scope);
  if (node.operator.value === 'not') return !isTruthy(value);
  if (typeof value !== 'number') throw templateError(`"${node.operator.value}" before ${typeName(value)}`);
  return node.operator.value === '-' ? -value : value;
};

/** Positional and named arguments of a call, `*list` and `**mapping` unpacked. */
export function evaluateArguments(context: RenderContext, nodes: readonly SyntaxNode[], scope: Scope): CallArguments {
  const positional: Value[] = [];
  const named = new Map<string, Value>();
  for (const node of nodes) {
    if (node.type === 'KeywordArgumentExpression') {
      const { key, value } = node as KeywordArgument;
      named.set(key.value, evaluate(context, value, scope));
    } else if (node.type === 'SpreadExpression' || node.type === 'KeywordSpreadExpression') {
      const value = evaluate(context, (node as Spread).argument, scope);
      if (Array.isArray(value) && node.type === 'SpreadExpression') for (const item of value) positional.push(item);
      else if (value instanceof Map && node.type !== 'SpreadExpression')
        value.forEach((item, key) => named.set(String(key), item));
      else throw templateError(`${typeName(value)} cannot be unpacked into arguments`);
    } else positional.push(evaluate(context, node, scope));
    context.budget.items(positional.length + named.size);
  }
  return { positional, named };
}

/** The function that `node` calls, or an error with its name. */
export function evaluateCallee(context: RenderContext, node: SyntaxNode, scope: Scope): Callable {
  const callee = evaluate(context, node, scope);
  if (typeof callee === 'function') return callee;
  const property = node.type === 'MemberExpression' ? (node as Member).property : node;
  const name = property.type === 'Identifier' ? `"${(property as Named).value}"` : 'an expression';
  throw templateError(`${name} is ${typeName(callee)}, not a function`);
}

const call: Evaluator<Call> = (context, node, scope) =>
  evaluateCallee(context, node.callee, scope)(evaluateArguments(context, node.args, scope));

/** Applies a filter node such as `trim` or `join(', ')` to a value. */
export function evaluateFilter(context: RenderContext, node: SyntaxNode, input: Value, scope: Scope): Value {
  if (node.type === 'Identifier') return applyFilter(context, (node as Named).value, input);
  const { callee, args } = node as Call;
  if (node.type !== 'CallExpression' || callee.type !== 'Identifier') throw templateError('a filter must be a name');
  return applyFilter(context, (callee as Named).value, input, evaluateArguments(context, args, scope));
}

const EVALUATORS: ReadonlyMap<string, Evaluator<never>> = new Map<string, Evaluator<never>>([
  ['IntegerLiteral', literal],
  ['FloatLiteral', literal],
  ['StringLiteral', literal],
  ['ArrayLiteral', list],
  ['TupleLiteral', list],
  ['ObjectLiteral', mapping],
  ['Identifier', (_context, node: Named, scope) => lookUp(scope, node.value)],
  ['MemberExpression', member],
  ['CallExpression', call],
  ['BinaryExpression', binary],
  ['UnaryExpression', unary],
  [
    'FilterExpression',
    (context, node: FilterUse, scope) =>
      evaluateFilter(context, node.filter, evaluate(context, node.operand, scope), scope),
  ],
  [
    'TestExpression',
    (context, node: TestUse, scope) =>
      findPredicate(node.test.value)(context, evaluate(context, node.operand, scope), undefined) !== node.negate,
  ],
  [
    'Ternary',
    (context, node: Ternary, scope) =>
      evaluate(context, isTruthy(evaluate(context, node.condition, scope)) ? node.trueExpr : node.falseExpr, scope),
  ],
  [
    'SelectExpression',
    (context, node: Select, scope) =>
      isTruthy(evaluate(context, node.test, scope)) ? evaluate(context, node.lhs, scope) : undefined,
  ],
]);

/** The value of an expression; each call is one step and one level of depth. */
export function evaluate(context: RenderContext, node: SyntaxNode, scope: Scope): Value {
  const evaluator = EVALUATORS.get(node.type);
  if (evaluator === undefined) throw templateError(`unexpected ${node.type}`);
  context.budget.step();
  context.budget.enter();
  const value = evaluator(context, node as never, scope);
  context.budget.leave();
  return value;
}
