/*
 * The text of the attention demo: "The House That Jack Built", a nursery rhyme first printed in 1755 in
 * London, here with the words of Randolph Caldecott's picture book of 1878. In the public domain
 * everywhere. Chosen because it says the same again and again, which a map of attention shows.
 */
#include "demo.h"

#define HOUSE  "That lay in the House that Jack built.\n\n"
#define MALT   "That ate the Malt,\n" HOUSE
#define RAT    "That killed the Rat,\n" MALT
#define CAT    "That worried the Cat,\n" RAT
#define DOG    "That tossed the Dog,\n" CAT
#define COW    "That milked the Cow with the crumpled horn,\n" DOG
#define MAIDEN "That kissed the Maiden all forlorn,\n" COW
#define MAN    "That married the Man all tattered and torn,\n" MAIDEN
#define PRIEST "That waked the Priest all shaven and shorn,\n" MAN
#define COCK   "That fed the Cock that crowed in the morn,\n" PRIEST

const char demo_text[] =
    "This is the House that Jack built.\n\n"
    "This is the Malt,\n" HOUSE "This is the Rat,\n" MALT "This is the Cat,\n" RAT
    "This is the Dog,\n" CAT "This is the Cow with the crumpled horn,\n" DOG
    "This is the Maiden all forlorn,\n" COW "This is the Man all tattered and torn,\n" MAIDEN
    "This is the Priest all shaven and shorn,\n" MAN
    "This is the Cock that crowed in the morn,\n" PRIEST
    "This is the Farmer who sowed the corn,\n" COCK;
