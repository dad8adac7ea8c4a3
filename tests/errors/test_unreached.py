"""The tool that lists sentences without a test reads sources and tests as they are written."""

import unreached


def test_a_format_becomes_a_sentence_with_holes():
    assert unreached.sentence_of_format("{} has {{no}} size {:d}") == "\0 has {no} size \0"
    assert unreached.literals('fail(K, "A", "one {}, "\n     "two", x, "three")') == ["A", "one {}, two", "three"]


def test_calls_are_read_to_their_end():
    text = 'fail(f(1), "a ) b", g(2)); rest'
    assert text[len("fail(") : unreached.closing(text, len("fail("))] == 'f(1), "a ) b", g(2))'


def test_a_sentence_is_found_whatever_its_values_are():
    texts = "axis i was split into i.outer at line 3\nanother text"
    assert unreached.is_tested("axis \0 was split into \0 at line \0", texts)
    assert not unreached.is_tested("axis \0 was fused into \0", texts)
    assert not unreached.is_tested("at line \0 another text", texts)


def test_the_places_of_both_languages_are_found():
    places = {place.split(":")[0] for place, _ in [*unreached.cpp_sites(), *unreached.python_sites()]}
    assert {"compiler/language/text/parser.cc", "client/python/kiln/_schedule/stage.py", "client/cli/npy.cc"} <= places
    assert len(list(unreached.cpp_sites())) > 400 and len(list(unreached.python_sites())) > 150


def test_every_sentence_has_a_test_or_a_reason_to_have_none():
    assert list(unreached.unreached()) == []
    places = [*unreached.cpp_sites(), *unreached.python_sites()]
    for entry in unreached.accepted():
        assert any(unreached.is_accepted(*place, [entry]) for place in places), entry
