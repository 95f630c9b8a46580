import type { JsonValue } from '../../../src/memory/types.ts';

/** One thing that agents ask a tool, in several wordings that all mean it. */
export interface Intent {
  readonly tool: string;
  readonly wordings: readonly JsonValue[];
}

const search = (...wordings: readonly string[]): Intent => ({ tool: 'web_search', wordings: wordings.map((query) => ({ query })) }); // prettier-ignore
const weather = (...wordings: readonly (readonly [string, string])[]): Intent => ({ tool: 'weather', wordings: wordings.map(([city, day]) => ({ city, day })) }); // prettier-ignore
const orders = (id: string): Intent => ({ tool: 'get_order', wordings: [{ id }] });
const convert = (amount: number, from: string, to: string): Intent => ({ tool: 'convert', wordings: [{ amount, from, to }, { to, from, amount }] }); // prettier-ignore

/** Each list has neighbours that only differ in a name, a number, a direction, an order or a negation. */
/* prettier-ignore */
export const DEVELOPMENT_CALLS: readonly Intent[] = [
  search('weather in Paris', 'What is the weather in Paris?', 'the weather in Paris', 'Please tell me the weather in Paris'),
  search('weather in London', 'the weather in London?', "what's the weather in London"),
  search('hotels in Rome with parking', 'hotel in Rome with parking', 'find hotels in Rome with parking'),
  search('hotels in Rome without parking', 'find me hotels in Rome without parking'),
  search('flights from Paris to London', 'flight from Paris to London', 'search flights from Paris to London'),
  search('flights from London to Paris', 'find flights from London to Paris'),
  search('population of Norway 2024', 'the population of Norway 2024', 'What is the population of Norway 2024?'),
  search('population of Norway 2023', 'What is the population of Norway 2023?'),
  search('books by Tolstoy', 'the books by Tolstoy'), search('books about Tolstoy', 'find books about Tolstoy'),
  search('how to open a bank account', 'How to open a bank account?'), search('how to close a bank account', 'how to close a bank account?'),
  search('Paris Hilton', 'paris hilton?'), search('Hilton Paris', 'the Hilton Paris'),
  search('symptoms of flu in children', 'what are the symptoms of flu in children'), search('symptoms of flu in adults', 'symptoms of flu in adults?'),
  search('is aspirin safe with alcohol', 'Is aspirin safe with alcohol?'), search('is ibuprofen safe with alcohol', 'is ibuprofen safe with alcohol?'),
  weather(['Paris', 'today'], ['paris', 'today'], ['Paris', 'Today']), weather(['London', 'today'], ['london', 'today']), weather(['Paris', 'tomorrow'], ['paris', 'Tomorrow']),
  weather(['Paris', '2026-01-02']), weather(['Paris', '2026-01-03']),
  orders('A-1001'), orders('A-1010'), orders('a-1001'), orders('A-1002'),
  convert(10, 'USD', 'EUR'), convert(10, 'EUR', 'USD'), convert(100, 'USD', 'EUR'),
];

/* prettier-ignore */
export const HELD_OUT_CALLS: readonly Intent[] = [
  search('opening hours of the Prado', 'What are the opening hours of the Prado?', 'show me the opening hours of the Prado', 'opening hours for the Prado'),
  search('opening hours of the Louvre', 'the opening hours of the Louvre', 'Opening hours of the Louvre?'),
  search('closing hours of the Prado', 'What are the closing hours of the Prado?'),
  search('trains from Vienna to Prague', 'train from Vienna to Prague', 'Find trains from Vienna to Prague', 'please look up trains from Vienna to Prague'),
  search('trains from Prague to Vienna', 'the trains from Prague to Vienna'),
  search('trains from Vienna to Graz', 'find trains from Vienna to Graz'),
  search('vegan restaurants in Oslo', 'vegan restaurant in Oslo', 'Can you find vegan restaurants in Oslo?'),
  search('vegetarian restaurants in Oslo', 'vegetarian restaurant in Oslo'),
  search('vegan restaurants in Bergen', 'get vegan restaurants in Bergen'),
  search('laptops under 500 euros', 'laptop under 500 euros', 'find laptops under 500 euros'),
  search('laptops over 500 euros', 'laptop over 500 euros'), search('laptops under 600 euros', 'show laptops under 600 euros'),
  search('who invented the telephone', 'Who invented the telephone?'), search('who invented the television', 'Who invented the television?'), search('when was the telephone invented', 'When was the telephone invented?'),
  search('side effects of metformin', 'what are the side effects of metformin', 'side effect of metformin'), search('side effects of metoprolol', 'the side effects of metoprolol'), search('benefits of metformin', 'what are the benefits of metformin'),
  search('visa requirements for Brazilians travelling to Japan', 'visa requirement for Brazilians travelling to Japan'), search('visa requirements for Japanese travelling to Brazil', 'the visa requirements for Japanese travelling to Brazil'),
  search('python list sort descending', 'Python list sort descending'), search('python list sort ascending', 'Python list sort ascending'), search('java list sort descending', 'Java list sort descending'),
  search('is it legal to fly a drone in Spain', 'Is it legal to fly a drone in Spain?'), search('is it illegal to fly a drone in Spain', 'is it illegal to fly a drone in Spain?'), search('is it legal to fly a drone in Portugal', 'Is it legal to fly a drone in Portugal?'),
  search('first president of Ghana', 'the first president of Ghana'), search('president of Ghana', 'who is the president of Ghana', 'the president of Ghana'), search('last president of Ghana', 'the last president of Ghana'),
  search('man bites dog', 'the man bites the dog'), search('dog bites man', 'the dog bites the man'),
  search('news about Apple', 'find news about Apple'), search('new about Apple'), search('apple pie recipe', 'the apple pie recipe', 'find an apple pie recipe'), search('apple cake recipe', 'an apple cake recipe'),
  search('house cat weight', 'the house cat weight'), search('cat house weight', 'the cat house weight'),
  search('my open tickets', 'show my open tickets'), search('open tickets', 'show open tickets', 'the open tickets'), search('your open tickets'),
  search('error E1042 meaning', 'error E1042 meaning?'), search('error E1024 meaning', 'the error E1024 meaning'),
  search('meeting on 2026-03-04', 'the meeting on 2026-03-04'), search('meeting on 2026-04-03', 'the meeting on 2026-04-03'),
  search('cheap flights', 'find cheap flights'), search('cheapest flights', 'the cheapest flights'), search('not cheap flights'),
  search('glass frames', 'the glass frames'), search('glasses frames', 'the glasses frames'),
  weather(['Oslo', 'today'], ['oslo', 'Today'], ['Oslo', 'today?']), weather(['Oslo', 'tomorrow'], ['oslo', 'tomorrow']), weather(['Bergen', 'today'], ['bergen', 'today']), weather(['Oslo', '2026-02-01']), weather(['Oslo', '2026-01-02']),
  orders('ZX-77'), orders('ZX-71'), orders('zx-77'), orders('ZX-777'), orders('XZ-77'),
  convert(25, 'GBP', 'JPY'), convert(25, 'JPY', 'GBP'), convert(250, 'GBP', 'JPY'), convert(25, 'GBP', 'SEK'),
];
