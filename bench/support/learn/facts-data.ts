/** A fact to teach: its question, the right answer, a text that only right answers contain, and other ways to ask. */
export interface TaughtFact {
  readonly question: string;
  readonly correction: string;
  readonly key: string;
  readonly paraphrases: readonly [string, string];
}

const fact = (question: string, correction: string, key: string, first: string, second: string): TaughtFact => ({
  question,
  correction,
  key,
  paraphrases: [first, second],
});

/** Names, numbers and passwords that no model can know. */
const PRIVATE: readonly TaughtFact[] = [
  fact('What is my dog called?', 'Your dog is called Biscuit.', 'Biscuit', "What is my dog's name?", 'Tell me the name of my dog.'), // prettier-ignore
  fact('What is the password of the guest network?', 'The guest network password is plum-kettle-42.', 'plum-kettle-42', 'Which password does the guest network have?', 'Tell me the guest network password.'), // prettier-ignore
  fact('Who is our head of sales?', 'Our head of sales is Maren Okafor.', 'Okafor', 'Who leads our sales team?', 'What is the name of our head of sales?'), // prettier-ignore
  fact('What is the number of my locker?', 'Your locker has the number 318.', '318', 'Which locker is mine?', "What is my locker's number?"), // prettier-ignore
  fact('When is the team meeting?', 'The team meeting is on Thursday at 10:15.', '10:15', 'At what time does the team meet?', 'What time is our team meeting?'), // prettier-ignore
  fact('Where is the spare car key?', 'The spare car key is in the blue teapot.', 'teapot', 'Where do we keep the spare key of the car?', 'Where can I find the spare car key?'), // prettier-ignore
  fact('What is the code name of the new product?', 'The code name of the new product is Heron.', 'Heron', 'Which code name does the new product have?', "What's the new product's code name?"), // prettier-ignore
  fact("What is my sister's birthday?", "Your sister's birthday is on 9 November.", '9 November', 'When was my sister born?', "When is my sister's birthday?"), // prettier-ignore
  fact('What is the extension of the help desk?', 'The help desk has the extension 5507.', '5507', 'Which extension reaches the help desk?', "What's the help desk's extension?"), // prettier-ignore
  fact('Which plumber do we use?', 'We use the plumber Lindqvist & Daughters.', 'Lindqvist', 'Who is our plumber?', "What is our plumber's name?"), // prettier-ignore
];

/** Facts of the world that a small model gets wrong or only half knows. */
const PUBLIC: readonly TaughtFact[] = [
  fact('What is the capital of Australia?', 'The capital of Australia is Canberra.', 'Canberra', "Which city is Australia's capital?", 'Name the capital city of Australia.'), // prettier-ignore
  fact('Who discovered penicillin?', 'Alexander Fleming discovered penicillin in 1928.', 'Fleming', 'Who was the discoverer of penicillin?', 'Which scientist discovered penicillin?'), // prettier-ignore
  fact('What is the atomic number of tungsten?', 'The atomic number of tungsten is 74.', '74', 'Which atomic number does tungsten have?', "What's tungsten's atomic number?"), // prettier-ignore
  fact('How many bones does an adult human have?', 'An adult human has 206 bones.', '206', 'What is the number of bones in an adult human?', 'How many bones are in the body of an adult?'), // prettier-ignore
  fact('Who painted The Night Watch?', 'Rembrandt painted The Night Watch.', 'Rembrandt', 'Which painter made The Night Watch?', 'The Night Watch was painted by whom?'), // prettier-ignore
  fact('When was the University of Bologna founded?', 'The University of Bologna was founded in 1088.', '1088', 'In which year was the University of Bologna founded?', 'What year did the University of Bologna begin?'), // prettier-ignore
  fact('What is the currency of Hungary?', 'The currency of Hungary is the forint.', 'forint', 'Which currency is used in Hungary?', 'What money do people use in Hungary?'), // prettier-ignore
  fact('Who wrote the play Hedda Gabler?', 'Henrik Ibsen wrote Hedda Gabler.', 'Ibsen', 'Who is the author of Hedda Gabler?', 'Hedda Gabler was written by whom?'), // prettier-ignore
  fact('Which planet has the most moons?', 'Saturn has the most moons.', 'Saturn', 'What planet has the largest number of moons?', 'Tell me the planet with the most moons.'), // prettier-ignore
  fact('At what temperature does lead melt?', 'Lead melts at 327 degrees Celsius.', '327', 'What is the melting point of lead?', 'How hot must lead be to melt?'), // prettier-ignore
];

export const FACTS: readonly TaughtFact[] = [...PRIVATE, ...PUBLIC];

/** Questions whose answers must stay as they are; half of them resemble a fact. */
export const ELSEWHERE: readonly string[] = [
  'What is the capital of France?',
  'Who wrote Romeo and Juliet?',
  'How many legs does a spider have?',
  'What is my cat called?',
  'What is the chemical symbol of gold?',
  'What is the currency of Japan?',
  'Who is our head of marketing?',
  'Which planet is closest to the Sun?',
  'What is the password of my laptop?',
  'At what temperature does water boil?',
  'Write a short poem about the sea.',
  'Explain photosynthesis in one sentence.',
  'Translate "good morning" into French.',
  'What is 12 times 12?',
  'Give me three names for a boat.',
  'Why is the sky blue?',
  'Is a tomato a fruit?',
  'How do I boil an egg?',
  'What does a compiler do?',
  'Name a primary colour.',
];
