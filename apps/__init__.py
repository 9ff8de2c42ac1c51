"""The algorithms that come with sigps: one file each, written with its public names only."""

from sigps.apps.betweenness import Betweenness
from sigps.apps.bfs import BFS
from sigps.apps.bitridn import BiTriDN
from sigps.apps.cdlp import CDLP
from sigps.apps.closeness import Closeness
from sigps.apps.dn_graphs import DNGraphs
from sigps.apps.edge_triangles import EdgeTriangles
from sigps.apps.ego_net import EgoNet
from sigps.apps.eigenvector import EigenvectorCentrality
from sigps.apps.greedy_colouring import GreedyColouring
from sigps.apps.harmonic_labels import HarmonicLabels
from sigps.apps.heat_diffusion import HeatDiffusion
from sigps.apps.hits import HITS
from sigps.apps.katz import Katz
from sigps.apps.kcore import KCore
from sigps.apps.khop import KHop
from sigps.apps.label_groups import LabelGroups
from sigps.apps.label_propagation import LabelPropagation
from sigps.apps.lcc import LCC
from sigps.apps.maximal_independent_set import MaximalIndependentSet
from sigps.apps.maximal_matching import MaximalMatching
from sigps.apps.minimum_spanning_forest import MinimumSpanningForest
from sigps.apps.neural_network import NeuralNetwork
from sigps.apps.out_degree import OutDegree
from sigps.apps.pagerank import PageRank
from sigps.apps.personalised_pagerank import PersonalisedPageRank
from sigps.apps.radius import Radius
from sigps.apps.scc import SCC
from sigps.apps.sssp import SSSP
from sigps.apps.streamdn import StreamDN
from sigps.apps.triangles import Triangles
from sigps.apps.tridn import TriDN
from sigps.apps.wcc import WCC
from sigps.apps.weighted_labels import WeightedLabels

__all__ = [
    "BFS",
    "CDLP",
    "HITS",
    "LCC",
    "SCC",
    "SSSP",
    "WCC",
    "Betweenness",
    "BiTriDN",
    "Closeness",
    "DNGraphs",
    "EdgeTriangles",
    "EgoNet",
    "EigenvectorCentrality",
    "GreedyColouring",
    "HarmonicLabels",
    "HeatDiffusion",
    "KCore",
    "KHop",
    "Katz",
    "LabelGroups",
    "LabelPropagation",
    "MaximalIndependentSet",
    "MaximalMatching",
    "MinimumSpanningForest",
    "NeuralNetwork",
    "OutDegree",
    "PageRank",
    "PersonalisedPageRank",
    "Radius",
    "StreamDN",
    "TriDN",
    "Triangles",
    "WeightedLabels",
]
